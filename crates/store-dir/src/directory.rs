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

use crate::{
    attributes::Kind,
    error::file_error,
    held::{Collection, HeldNames},
    names::is_shown,
    part::{Children, Part},
    root::Opened,
    small::SmallDirectories,
};

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

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Relaxed);
    }
}

/// The names that are cached between pages, and between listings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedNames<'n> {
    pub(crate) held: &'n HeldNames,
    pub(crate) small: &'n SmallDirectories,
}

/// Returns the first children of a part: of the names that are cached, or in one pass over the directory, with memory for
/// these children, and for those that are cached.
///
/// `kind_of` returns what a symbolic link leads to, or what a name is if the directory does not contain that; `None` for
/// nothing.
pub(crate) fn read_children(
    directory: &Opened,
    part: Part<'_>,
    cancelled: &Cancelled,
    CachedNames { held, small }: CachedNames<'_>,
    mut kind_of: impl FnMut(&str) -> Result<Option<Kind>, StoreError>,
) -> Result<Children, StoreError> {
    let failed = |error: Errno| file_error(ACTION, part.prefix, error.into());
    let found = small.find(&directory.attributes, part).or_else(|| held.find(&directory.attributes, part));
    if let Some(children) = found {
        return Ok(children);
    }
    let mut all = SmallDirectories::collect(&directory.attributes, directory.precision);
    let mut collection = held.collect(&directory.attributes, directory.precision, part);
    let mut entries_read = 0_u64;
    let mut smallest = Smallest { part, heap: BinaryHeap::new(), more: false, candidate: String::new() };
    seek(&directory.file, SeekFrom::Start(0)).map_err(failed)?;
    let mut buffer = Vec::with_capacity(BUFFER);
    let mut entries = RawDir::new(&directory.file, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            // The directory was removed meanwhile.
            Err(Errno::NOENT | Errno::STALE) => {
                all = None;
                break;
            }
            Err(error) => return Err(failed(error)),
        };
        if cancelled.0.load(Relaxed) {
            return Err(failed(Errno::CANCELED));
        }
        entries_read = entries_read.saturating_add(1);
        let Ok(name) = entry.file_name().to_str() else { continue };
        if !is_shown(name) {
            continue;
        }
        all = match (all, entry.file_type()) {
            (Some(all), FileType::RegularFile) if has_key_length(part.prefix, name, "") => all.with(name, ""),
            (Some(all), FileType::Directory) if has_key_length(part.prefix, name, "/") => all.with(name, "/"),
            // The kind of what a link leads to may change without the directory.
            (_, FileType::Symlink | FileType::Unknown) => None,
            (all, _) => all,
        };
        if let Some(collection) = &mut collection {
            match entry.file_type() {
                FileType::RegularFile => smallest.collect(name, "", collection),
                FileType::Directory => smallest.collect(name, "/", collection),
                FileType::Symlink | FileType::Unknown => collection.cannot_be_held(),
                _ => {}
            }
        }
        if !smallest.may_take(name) {
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
    held.count_entries(entries_read);
    if let Some(all) = all {
        small.insert(&directory.attributes, part.prefix, all);
    }
    let Smallest { heap, more, .. } = smallest;
    if let Some(collection) = collection.filter(|_| more) {
        held.hold(&directory.attributes, part, collection);
    }
    Ok(Children { names: heap.into_sorted_vec(), more })
}

/// True unless a name below a prefix is too long for a key, or for a key below it.
fn has_key_length(prefix: &str, name: &str, end: &str) -> bool {
    let len = prefix.len().saturating_add(name.len()).saturating_add(end.len());
    // A key below a directory has at least one more byte.
    len <= MAX_KEY_LEN.saturating_sub(end.len())
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

    /// Adds a name to a collection, if it follows the text after which the part begins.
    fn collect(&mut self, name: &str, end: &str, collection: &mut Collection<'_>) {
        if self.is_candidate(name, end) {
            collection.add(name, end);
        }
    }

    fn offer(&mut self, name: &str, end: &str) {
        if !self.is_candidate(name, end) {
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

    /// True if a name is that of a key or prefix, and follows the text after which the part begins.
    fn is_candidate(&mut self, name: &str, end: &str) -> bool {
        if !has_key_length(self.part.prefix, name, end) {
            return false;
        }
        self.set_candidate(name, end);
        self.is_after()
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
