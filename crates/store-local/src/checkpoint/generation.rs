//! Generations of the index, and the durable pointer to the current one.
//!
//! The file `generation` contains the number of the current generation as text, with a checksum; without the file it is
//! 0. Generation 0 is in the directory `index`, the others are in `index-<number>`.

use std::{
    fs,
    fs::File,
    io,
    path::{Path, PathBuf},
};

use xxhash_rust::xxh3::xxh3_64;

use crate::{FileCorruption, OpenError, durable::write_durably, paths::Paths, regular_file};

const NAME: &str = "index";
/// The name prefix of the copy that is checked when a store is opened.
pub(crate) const CHECKED_COPY: &str = "check-";

/// The current generation of a store's index.
#[derive(Clone, Debug)]
pub(crate) struct Generations {
    paths: Paths,
    current: u64,
}

impl Generations {
    pub(crate) fn read(paths: &Paths) -> Result<Self, OpenError> {
        let path = paths.generation();
        let current = match regular_file::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            text => parse(&String::from_utf8_lossy(&text.map_err(OpenError::io("read", &path))?))
                .ok_or_else(|| OpenError::Corrupt { file: path, cause: FileCorruption::ContentMismatch })?,
        };
        Ok(Self { paths: paths.clone(), current })
    }

    /// The directory of the current generation.
    pub(crate) fn dir(&self) -> PathBuf {
        self.dir_of(self.current)
    }

    /// The directory of the next generation.
    pub(crate) fn next_dir(&self) -> PathBuf {
        self.dir_of(self.current.saturating_add(1))
    }

    /// Makes the next generation, which is durable, the current one, durably. If no space is left, nothing changes.
    pub(crate) fn switch(&mut self) -> io::Result<()> {
        let next = self.current.saturating_add(1);
        write_durably(&self.paths.generation(), format(next).as_bytes())?;
        // If this fails, either generation may be current, so the error must not look like a lack of space.
        File::open(&self.paths.dir).and_then(|dir| dir.sync_all()).map_err(io::Error::other)?;
        self.current = next;
        Ok(())
    }

    /// Removes other generations, which only a crash or a slow reader leaves.
    pub(crate) fn remove_others(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.paths.dir)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let recognized =
                name == NAME || name.strip_prefix("index-").is_some_and(|number| number.parse::<u64>().is_ok());
            // A killed process may have left the copy that it checked.
            let recognized = recognized || name.starts_with(CHECKED_COPY);
            if recognized && entry.path() != self.dir() {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    fn dir_of(&self, number: u64) -> PathBuf {
        self.paths.dir.join(if number == 0 { NAME.to_owned() } else { format!("{NAME}-{number}") })
    }
}

/// The disk space of all files below a directory, in bytes.
pub(crate) fn disk_bytes(dir: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut total = 0_u64;
    let mut waiting = vec![dir.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => waiting.push(entry.path()),
                Ok(metadata) => total = total.saturating_add(metadata.blocks().saturating_mul(512)),
                // The index has just removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(total)
}

fn format(number: u64) -> String {
    format!("{number} {:016x}\n", xxh3_64(number.to_string().as_bytes()))
}

fn parse(text: &str) -> Option<u64> {
    let number = text.split(' ').next()?.parse().ok()?;
    (format(number) == text).then_some(number)
}
