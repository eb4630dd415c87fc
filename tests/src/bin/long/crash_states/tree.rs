//! The contents of a directory: built in memory, written to disk, and read back.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::Path,
    sync::Arc,
};

use xxhash_rust::xxh3::Xxh3;

/// Files and directories by path, each directory before its contents. Directories have no bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tree(pub(crate) BTreeMap<String, Option<Arc<Vec<u8>>>>);

/// The size of the blocks that are compared with zeros.
const BLOCK_SIZE: usize = 64 << 10;
static ZEROS: [u8; BLOCK_SIZE] = [0; BLOCK_SIZE];

impl Tree {
    /// A hash of the contents.
    pub(crate) fn hash(&self) -> u128 {
        let mut hash = Xxh3::new();
        for (path, bytes) in &self.0 {
            hash.update(path.as_bytes());
            match bytes {
                None => hash.update(b"/\0"),
                Some(bytes) => {
                    hash.update(b"\0");
                    hash.update(&bytes.len().to_le_bytes());
                    hash.update(bytes);
                }
            }
        }
        hash.digest128()
    }

    pub(crate) fn read(dir: &Path) -> Self {
        let mut tree = Self::default();
        tree.take(dir, "").expect("read a directory");
        tree
    }

    fn take(&mut self, dir: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let name = format!("{prefix}{}", entry.file_name().to_str().expect("a name of text"));
            if entry.file_type()?.is_dir() {
                self.take(&entry.path(), &format!("{name}/"))?;
                self.0.insert(name, None);
            } else {
                self.0.insert(name, Some(Arc::new(fs::read(entry.path())?)));
            }
        }
        Ok(())
    }

    /// Makes a directory have exactly these contents.
    pub(crate) fn write(&self, dir: &Path) {
        self.remove_extra(dir, "").expect("empty a directory");
        for (path, bytes) in &self.0 {
            let path = dir.join(path);
            match bytes {
                None => match fs::create_dir(&path) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    made => made.expect("make a directory"),
                },
                Some(bytes) => write_sparsely(&path, bytes).expect("write a file"),
            }
        }
    }

    /// Removes everything except the required directories.
    fn remove_extra(&self, dir: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if !entry.file_type()?.is_dir() {
                fs::remove_file(entry.path())?;
            } else if self.0.get(&name) == Some(&None) {
                self.remove_extra(&entry.path(), &format!("{name}/"))?;
            } else {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    /// The paths at which two trees differ, each with a short description.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let paths: std::collections::BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        let show = |node: Option<&Option<Arc<Vec<u8>>>>| match node {
            None => "nothing".to_owned(),
            Some(None) => "a directory".to_owned(),
            Some(Some(bytes)) => format!("{} bytes", bytes.len()),
        };
        let differ = paths.into_iter().filter(|path| self.0.get(*path) != other.0.get(*path));
        differ.map(|path| format!("{path}: {} and {}", show(self.0.get(path)), show(other.0.get(path)))).collect()
    }
}

fn write_sparsely(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = File::create(path)?;
    file.set_len(bytes.len() as u64)?;
    for (number, piece) in bytes.chunks(BLOCK_SIZE).enumerate() {
        if piece != &ZEROS[..piece.len()] {
            file.write_all_at(piece, (number * BLOCK_SIZE) as u64)?;
        }
    }
    Ok(())
}
