//! The file or stream that a log is written to.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

/// The number of attempts to write to a stream that takes nothing at the moment, and the pause between them.
const ATTEMPTS: u32 = 100;
const RETRY_DELAY: Duration = Duration::from_millis(10);

/// An open log.
#[derive(Debug)]
pub(super) enum Output {
    /// The standard error stream, which is shared with the log of the program.
    Stderr,
    /// A file to append to.
    File {
        /// The open file.
        file: File,
        /// Its path, at which it is opened again.
        path: PathBuf,
        /// The permissions of a new file.
        mode: u32,
    },
}

/// A failure to write a batch.
#[derive(Debug)]
pub(super) struct WriteFailure {
    /// The number of bytes that were written.
    pub(super) written: usize,
    /// The reason.
    pub(super) error: io::Error,
}

impl Output {
    /// Opens a file to append to, and creates it with these permissions if it does not exist.
    pub(super) fn append(path: &Path, mode: u32) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(mode).open(path)?;
        Ok(Self::File { file, path: path.to_owned(), mode })
    }

    /// Opens the file at the path again, since the open one may have been renamed.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        if let Self::File { path, mode, .. } = self {
            *self = Self::append(path, *mode)?;
        }
        Ok(())
    }

    /// Writes a batch, with one call of the system unless it takes only a part.
    pub(super) fn write(&mut self, batch: &[u8]) -> Result<(), WriteFailure> {
        match self {
            // The lock excludes other lines of this process, which the system does not for large batches.
            Self::Stderr => write_batch(&mut io::stderr().lock(), batch),
            Self::File { file, .. } => write_batch(file, batch),
        }
    }
}

fn write_batch(output: &mut impl Write, batch: &[u8]) -> Result<(), WriteFailure> {
    let (mut rest, mut attempts) = (batch, ATTEMPTS);
    while !rest.is_empty() {
        let error = match output.write(rest) {
            Ok(0) => io::ErrorKind::WriteZero.into(),
            Ok(count) => {
                rest = rest.get(count..).unwrap_or_default();
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && attempts > 0 => {
                attempts -= 1;
                thread::sleep(RETRY_DELAY);
                continue;
            }
            Err(error) => error,
        };
        return Err(WriteFailure { written: batch.len() - rest.len(), error });
    }
    Ok(())
}
