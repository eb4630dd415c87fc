//! Files that are what they should be: a pipe in place of one would never end.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;

/// Opens a regular file for reading. Anything else is an error.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
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
