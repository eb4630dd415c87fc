//! Reading a directory in pages.

use std::{
    collections::BinaryHeap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use rustix::{
    fs::{FileType, RawDir, SeekFrom, seek},
    io::Errno,
};
use zarrd_store::{MAX_KEY_LEN, StoreError};

use crate::{attributes::Kind, error::file_error, names::is_shown, root::Opened};

/// The size of the buffer for the entries of a directory, in bytes.
const BUFFER: usize = 64 << 10;

/// The action that fails if a directory cannot be listed.
pub(crate) const ACTION: &str = "list a directory";

/// Stops a listing that nobody waits for any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancelled(Arc<AtomicBool>);

/// Cancels a listing when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct CancelOnDrop(pub(crate) Cancelled);

/// Some children of a directory: the names of files and, with a `/` at the end, of directories.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Children {
    /// Sorted by bytes.
    pub(crate) names: Vec<String>,
    /// True if there may be more after the last one.
    pub(crate) more: bool,
}

/// The part of a directory that is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'p> {
    /// The prefix of the directory.
    pub(crate) prefix: &'p str,
    /// The children after this text are returned, with the directory that contains it.
    pub(crate) after: &'p str,
    /// The maximum number of children.
    pub(crate) limit: usize,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Relaxed);
    }
}

/// Reads the first children of a part, in one pass and with memory for these children only.
///
/// `kind_of` returns what a symbolic link leads to, or what a name is if the directory does not contain that; `None` for
/// nothing.
pub(crate) fn read_children(
    directory: &Opened,
    part: Part<'_>,
    cancelled: &Cancelled,
    mut kind_of: impl FnMut(&str) -> Result<Option<Kind>, StoreError>,
) -> Result<Children, StoreError> {
    let failed = |error: Errno| file_error(ACTION, part.prefix, error.into());
    let mut smallest = Smallest { part, heap: BinaryHeap::new(), more: false, candidate: String::new() };
    seek(&directory.file, SeekFrom::Start(0)).map_err(failed)?;
    let mut buffer = Vec::with_capacity(BUFFER);
    let mut entries = RawDir::new(&directory.file, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            // The directory was removed meanwhile.
            Err(Errno::NOENT | Errno::STALE) => break,
            Err(error) => return Err(failed(error)),
        };
        if cancelled.0.load(Relaxed) {
            return Err(failed(Errno::CANCELED));
        }
        let Ok(name) = entry.file_name().to_str() else { continue };
        if !is_shown(name) || !smallest.may_take(name) {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::RegularFile => Some(Kind::Regular),
            FileType::Directory => Some(Kind::Directory),
            FileType::Symlink | FileType::Unknown => kind_of(name)?,
            _ => None,
        };
        match kind {
            Some(Kind::Regular) => smallest.offer(name, ""),
            Some(Kind::Directory) => smallest.offer(name, "/"),
            _ => {}
        }
    }
    let Smallest { heap, more, .. } = smallest;
    Ok(Children { names: heap.into_sorted_vec(), more })
}

/// The smallest children of a part so far.
struct Smallest<'p> {
    part: Part<'p>,
    /// The largest is at the top.
    heap: BinaryHeap<String>,
    more: bool,
    candidate: String,
}

impl Smallest<'_> {
    /// True unless it is certain that the name is not among the children, whether it is a directory or not.
    fn may_take(&mut self, name: &str) -> bool {
        if self.is_beyond(name) {
            self.more = true;
            return false;
        }
        name > self.part.after || {
            self.set_candidate(name, "/");
            self.is_after()
        }
    }

    fn offer(&mut self, name: &str, end: &str) {
        let len = self.part.prefix.len().saturating_add(name.len()).saturating_add(end.len());
        // A key below a directory has at least one more byte.
        if len > MAX_KEY_LEN.saturating_sub(end.len()) {
            return;
        }
        self.set_candidate(name, end);
        if !self.is_after() {
            return;
        }
        if self.is_beyond(&self.candidate) {
            self.more = true;
            return;
        }
        self.heap.push(self.candidate.clone());
        if self.heap.len() > self.part.limit {
            self.heap.pop();
            self.more = true;
        }
    }

    fn set_candidate(&mut self, name: &str, end: &str) {
        self.candidate.clear();
        self.candidate.push_str(name);
        self.candidate.push_str(end);
    }

    /// True if the candidate follows the text after which the part begins, or is a directory that contains it.
    fn is_after(&self) -> bool {
        let after = self.part.after;
        let contains = self.candidate.ends_with('/') && after.len() > self.candidate.len();
        self.candidate.as_str() > after || (contains && after.starts_with(&self.candidate))
    }

    /// True if there are enough children before this text.
    fn is_beyond(&self, text: &str) -> bool {
        self.heap.len() >= self.part.limit && self.heap.peek().is_none_or(|largest| text > largest.as_str())
    }
}
