//! `get` and `stats`.

use serde_json::{Value, json};

use crate::runner::TestDir;

/// A directory with an int16 array of the numbers 0 to 11, in two chunks of 3 by 2.
fn write_array(dir: &TestDir) {
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [3, 4], "data_type": "int16", "fill_value": 0,
        "dimension_names": ["y", "x"], "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3, 2]}},
        "chunk_key_encoding": {"name": "default"},
    });
    dir.write("files/lab/a/zarr.json", document.to_string());
    for column in [0, 1_i16] {
        let numbers = (0..3).flat_map(|row| (0..2).map(move |at| row * 4 + column * 2 + at));
        let bytes: Vec<u8> = numbers.flat_map(i16::to_le_bytes).collect();
        dir.write(&format!("files/lab/a/c/0/{column}"), bytes);
    }
}

fn check(dir: &TestDir, at: &[&str]) {
    let get = |args: &[&str]| dir.succeeds(&[&["get", "lab/a"], args, at].concat()).stdout;
    assert_eq!(get(&["--select", "-1,::2"]), "[8,10]\n");
    assert_eq!(
        get(&["--reduce", "max,min", "--axis", "y", "--format", "csv"]),
        "x_0,x_1,x_2,x_3\r\n8,9,10,11\r\n0,1,2,3\r\n"
    );
    assert_eq!(get(&["--isel", "y=1", "--coarsen", "x=2", "--reduce", "mean"]), "[4.5,6.5]\n");
    assert_eq!(get(&["--astype", "float32", "--select", "0,0"]), "0.0\n");
    for (file, start) in [("out.npy", &b"\x93NUMPY"[..]), ("out.png", b"\x89PNG"), ("out.json", b"[[0,1")] {
        assert_eq!(get(&["-o", file]), "");
        assert!(std::fs::read(dir.path(file)).unwrap().starts_with(start), "{file}");
    }
    let colours = ["--min", "2", "--max", "5", "--scale", "symlog", "--linthresh", "3", "--under", "ff0000", "--over"];
    let plain = get(&["-o", "plain.png", "--min", "2", "--max", "5"]);
    let coloured = get(&[&["-o", "coloured.png"], &colours[..], &["00ff0080", "--nan", "000000"]].concat());
    assert_eq!([plain, coloured], ["", ""]);
    assert!(std::fs::read(dir.path("plain.png")).unwrap() != std::fs::read(dir.path("coloured.png")).unwrap());
    dir.fails(&[&["get", "lab/a", "-o", "out.png", "--rgb", "--select", "0"], at].concat(), 1, &["cannot read"]);
    let stats = dir.succeeds(&[&["stats", "lab/a", "--json"], at].concat()).stdout;
    let stats: Value = serde_json::from_str(&stats).unwrap();
    assert_eq!(json!([stats["count"], stats["min"], stats["max"], stats["mean"]]), json!([12, 0, 11, 5.5]));
    let text = dir.succeeds(&[&["stats", "lab/a", "--bins", "2", "--select", "0"], at].concat()).stdout;
    assert!(text.starts_with("count") && text.contains("quantile 0.5") && text.contains("histogram"), "{text}");
    dir.fails(&[&["get", "lab/a", "--select", "9"], at].concat(), 1, &["cannot read /lab/a"]);
    dir.fails(&[&["get", "lab/none"], at].concat(), 1, &["lab/none"]);
    dir.fails(&[&["get", "lab/a", "--scale", "cubic"], at].concat(), 2, &["scale"]);
    dir.fails(&[&["get", "lab/a", "-o", "out.xyz"], at].concat(), 2, &["--format"]);
}

#[test]
fn elements_of_each_kind_of_store_are_the_same() {
    let dir = TestDir::new();
    write_array(&dir);
    check(&dir, &["--store", "dir:files"]);
    dir.succeeds(&["import", "files", "", "--store", "sled:data"]);
    check(&dir, &["--store", "sled:data"]);
    let server = dir.serve(&["--store", "sled:data"]);
    check(&dir, &["--server", &server.url()]);
    server.stop();
}
