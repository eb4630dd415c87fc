//! Files that are what they should be: a pipe in place of one would never end.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;

/// Options of opening for reading with which a pipe in place of the file is opened, locked and read without waiting for its
/// other end.
pub(crate) fn options() -> OpenOptions {
    let mut options = File::options();
    options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    options
}

/// Opens a regular file for reading. Anything else is an error.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let file = options().open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// Reads a regular file of any size.
pub(crate) fn read_all(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a small regular file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    const MAX_BYTES: u64 = 16 << 20;
    let mut bytes = Vec::new();
    open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}
