//! Walking everything below a directory, in no order, without following links.

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, FileType, RawDir, SeekFrom, seek},
    io::Errno,
};
use zarrd_store::StoreError;

use crate::{
    attributes::Kind,
    error::{Failure, change_error},
    inner::Inner,
    names::is_shown,
    writer::Writer,
};

/// The size of the buffer for the entries of a directory, in bytes.
const BUFFER: usize = 64 << 10;

/// The number of directories of a directory that are in memory at a time.
const MAX_PENDING: usize = 4096;

/// The treatment of the files of a tree.
pub(super) trait Visitor {
    /// True if the walk ends early.
    fn is_stopped(&self) -> bool {
        false
    }

    /// Visits a file or link of a directory, whose path ends in `/` unless it is empty. Returns true if it was removed.
    fn visit(&mut self, directory: &OwnedFd, path: &str, file: File<'_>) -> Result<bool, StoreError>;

    /// Leaves a directory after everything below it was visited. Returns true if it was removed.
    fn leave(&mut self, path: &str, contents: Contents) -> Result<bool, StoreError>;
}

/// A file or link.
#[derive(Clone, Copy, Debug)]
pub(super) struct File<'n> {
    pub(super) name: &'n str,
    pub(super) kind: Kind,
    /// True if the name is one that a key may have.
    pub(super) is_shown: bool,
}

/// The contents of a directory after its files were visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    Unchanged,
    /// Some files or directories were removed.
    Changed,
}

/// A directory that is being walked.
struct Frame {
    path: String,
    /// The position at which reading continues.
    cookie: u64,
    /// The directories in it that were found and not visited.
    pending: Vec<String>,
    is_read: bool,
    contents: Contents,
}

/// Walks everything below a directory, whose path ends in `/` unless it is empty. Blocks.
pub(super) fn walk(inner: &Inner, writer: &Writer, path: &str, visitor: &mut impl Visitor) -> Result<(), StoreError> {
    let mut frames = vec![Frame::new(path.to_owned())];
    while let Some(frame) = frames.last_mut() {
        if visitor.is_stopped() {
            return Ok(());
        }
        if let Some(name) = frame.pending.pop() {
            let below = Frame::new(format!("{}{name}/", frame.path));
            frames.push(below);
        } else if !frame.is_read {
            frame.read(inner, writer, visitor)?;
        } else if let Some(frame) = frames.pop() {
            let is_removed = visitor.leave(&frame.path, frame.contents)?;
            if let Some(above) = frames.last_mut().filter(|_| is_removed) {
                above.contents = Contents::Changed;
            }
        }
    }
    Ok(())
}

impl Frame {
    fn new(path: String) -> Self {
        Self { path, cookie: 0, pending: Vec::new(), is_read: false, contents: Contents::Unchanged }
    }

    /// Reads the directory, until it has found as many directories as are in memory at a time.
    fn read(&mut self, inner: &Inner, writer: &Writer, visitor: &mut impl Visitor) -> Result<(), StoreError> {
        let failed = |path: &str, failure| change_error(crate::directory::ACTION, path, failure);
        let path = self.path.strip_suffix('/').unwrap_or_default();
        let directory = match inner.root.open_unfollowed(&writer.folder, path) {
            // It was removed or replaced meanwhile, or belongs to the server.
            Err(
                Failure::File(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG)
                | Failure::LinkOnTheWay
                | Failure::Private,
            ) => {
                self.is_read = true;
                return Ok(());
            }
            opened => opened.map_err(|failure| failed(&self.path, failure))?,
        };
        seek(&directory, SeekFrom::Start(self.cookie)).map_err(|error| failed(&self.path, error.into()))?;
        let mut buffer = Vec::with_capacity(BUFFER);
        let mut entries = RawDir::new(&directory, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(Errno::NOENT | Errno::STALE) => break,
                Err(error) => return Err(failed(&self.path, error.into())),
            };
            if visitor.is_stopped() {
                return Ok(());
            }
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::RegularFile => Kind::Regular,
                FileType::Directory => Kind::Directory,
                FileType::Symlink => Kind::Symlink,
                FileType::Unknown => match inner.root.attributes_unfollowed(&directory, name, AtFlags::empty()) {
                    Ok(found) => found.kind,
                    Err(_) => continue,
                },
                _ => Kind::Special,
            };
            match kind {
                Kind::Directory => self.pending.push(name.to_owned()),
                Kind::Regular | Kind::Symlink => {
                    let file = File { name, kind, is_shown: is_shown(name) };
                    if visitor.visit(&directory, &self.path, file)? {
                        self.contents = Contents::Changed;
                    }
                }
                Kind::Special => {}
            }
            if self.pending.len() >= MAX_PENDING {
                self.cookie = entry.next_entry_cookie();
                return Ok(());
            }
        }
        self.is_read = true;
        Ok(())
    }
}
