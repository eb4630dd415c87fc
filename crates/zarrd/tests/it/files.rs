//! Directories to be transferred, and their comparison.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::runner::TestDir;

/// The files below a directory, by relative path.
pub(crate) fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                all.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    all
}

/// Writes files with unusual names and sizes: names that begin with a dot or need encoding in a URL, empty files, files
/// with inline values, of one block and of many, and a deeply nested file. Returns their number.
pub(crate) fn make(dir: &TestDir, root: &str) -> usize {
    let deep = format!("{}/zarr.json", vec!["deep"; 40].join("/"));
    let long = "n".repeat(255);
    let files: &[(&str, usize)] = &[
        (".zgroup", 24),
        (".zattrs", 0),
        (".zmetadata", 300),
        ("array/.zarray", 350),
        ("array/0.0", 4096),
        ("array/0.1", 4097),
        ("array/1.0", 131_072),
        ("array/1.1", 3_000_001),
        ("v3/zarr.json", 500),
        ("v3/c/0/0", 300_000),
        ("a b/ü%2F?#&+:@中.bin", 10),
        ("...", 1),
        (&deep, 33),
        (&long, 5),
    ];
    for (index, (name, size)) in files.iter().enumerate() {
        let bytes: Vec<u8> = (0..*size).map(|at| (at * 31 + index * 7 + at / 251) as u8).collect();
        dir.write(&format!("{root}/{name}"), bytes);
    }
    fs::create_dir_all(dir.path(root).join("empty directory")).unwrap();
    files.len()
}

/// Unpacks a store that zarr-python 2.18 wrote in the 2020 draft of Zarr v3.
pub(crate) fn unpack_sample(dir: &TestDir) -> PathBuf {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/draft_v3_zarr218.tar.gz");
    let packed = flate2::read::GzDecoder::new(fs::File::open(packed).unwrap());
    tar::Archive::new(packed).unpack(dir.path("")).unwrap();
    dir.path("draft_v3_zarr218.zr3")
}
