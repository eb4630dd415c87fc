//! Walking the directories of a listing.

use std::{collections::VecDeque, sync::Arc};

use rustix::io::Errno;
use zarrd_store::{Key, ListingState, MAX_PAGE_ENTRIES, Prefix, StoreError, WarningRate};

use crate::{
    attributes::{Attributes, FileId, Kind},
    directory::{ACTION, CachedNames, Cancelled, read_children},
    error::{Failure, file_error},
    listing_state::StateHash,
    part::{Children, Part},
    quiet::Precision,
    root::{Opened, Root, Wait},
};

static WARNINGS: WarningRate = WarningRate::new();

/// The number of directories of a listing that are open at a time: the innermost ones, since a document often follows the
/// directory of an array's chunks.
const MAX_OPEN: usize = 4;

/// A value in a listing.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) key: Key,
    pub(crate) attributes: Attributes,
    pub(crate) precision: Precision,
}

/// A child of a directory.
#[derive(Clone, Debug)]
pub(crate) enum Child {
    Value(Found),
    Prefix(Prefix),
}

/// A part of a listing.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) entries: Vec<T>,
    /// The key or prefix after which the next page begins, if there may be one.
    pub(crate) last: Option<String>,
    /// The state of what it was read from, if the page is one of values.
    pub(crate) state: Option<ListingState>,
}

/// Reads directories for one page.
#[derive(Debug)]
pub(crate) struct Walker<'r> {
    pub(crate) root: &'r Root,
    /// The directory of the store, as it is at the start of the page.
    pub(crate) top: Arc<Opened>,
    pub(crate) cached: CachedNames<'r>,
    pub(crate) cancelled: &'r Cancelled,
}

/// A directory on the way to the current one.
#[derive(Debug)]
struct Frame {
    prefix: String,
    /// Open while this is one of the innermost directories.
    directory: Option<Opened>,
    /// The next children.
    children: VecDeque<String>,
    /// The last child that was visited, or the text after which the page begins.
    after: String,
    /// True if there may be children after those that were read.
    more: bool,
    /// The number of children that are read next.
    batch: usize,
}

impl Walker<'_> {
    /// The children of a prefix after a text that is relative to it.
    pub(crate) fn children(&self, prefix: &Prefix, after: &str, limit: usize) -> Result<Page<Child>, StoreError> {
        let mut page = Page { entries: Vec::new(), last: None, state: None };
        let Some(directory) = self.open(prefix.as_str())? else { return Ok(page) };
        let part = Part { prefix: prefix.as_str(), after, limit: limit.saturating_add(1) };
        let mut names = self.read(&directory, part, &mut StateHash::new())?.names;
        if names.len() > limit {
            names.truncate(limit);
            page.last = names.last().map(|name| format!("{prefix}{name}"));
        }
        for name in names {
            if name.ends_with('/') {
                page.entries.extend(Prefix::parse(&format!("{prefix}{name}")).ok().map(Child::Prefix));
            } else {
                page.entries.extend(self.value(&directory, prefix.as_str(), &name)?.map(Child::Value));
            }
        }
        Ok(page)
    }

    /// The values below a prefix after a text that is relative to it, at any depth.
    pub(crate) fn values(&self, prefix: &Prefix, after: &str, limit: usize) -> Result<Page<Found>, StoreError> {
        let wanted = limit.saturating_add(1);
        let mut frames = vec![Frame::new(prefix.to_string(), after.to_owned())];
        let (mut entries, mut state) = (Vec::<Found>::new(), StateHash::new());
        while let Some(frame) = frames.last_mut() {
            let missing = wanted.saturating_sub(entries.len());
            if missing == 0 {
                break;
            }
            let Some((name, rest)) = frame.next(self, missing, &mut state)? else {
                frames.pop();
                continue;
            };
            if name.ends_with('/') {
                let below = Frame::new(format!("{}{name}", frame.prefix), rest);
                forget_children(&mut frames, wanted);
                frames.push(below);
                let outer = frames.len().checked_sub(MAX_OPEN.saturating_add(1));
                if let Some(outer) = outer.and_then(|outer| frames.get_mut(outer)) {
                    outer.directory = None;
                }
            } else {
                frame.open(self, &mut state)?;
                let Some(directory) = &frame.directory else { continue };
                match self.value(directory, &frame.prefix, &name)? {
                    Some(found) => {
                        state.add(found.key.as_str(), &found.attributes, found.precision);
                        entries.push(found);
                    }
                    None => state.set_unknown(),
                }
            }
        }
        let more = entries.len() > limit;
        entries.truncate(limit);
        let last = entries.last().filter(|_| more).map(|last| last.key.to_string());
        Ok(Page { entries, last, state: state.finish() })
    }

    fn open(&self, prefix: &str) -> Result<Option<Opened>, StoreError> {
        self.root.open_directory(&self.top, prefix).map_err(|failure| file_error(ACTION, prefix, failure))
    }

    fn read(&self, directory: &Opened, part: Part<'_>, state: &mut StateHash) -> Result<Children, StoreError> {
        let kind_of = |name: &str| {
            state.set_unknown();
            self.kind_of(part.prefix, name)
        };
        read_children(directory, part, self.cancelled, self.cached, kind_of)
    }

    /// The value of a name in a directory, unless it has none by now.
    fn value(&self, directory: &Opened, prefix: &str, name: &str) -> Result<Option<Found>, StoreError> {
        let Ok(key) = Key::parse(&format!("{prefix}{name}")) else { return Ok(None) };
        let failed = |failure| file_error(ACTION, key.as_str(), failure);
        let Some(attributes) = self.root.attributes_of_name(&directory.file, name).map_err(failed)? else {
            return Ok(None);
        };
        match attributes.kind {
            Kind::Regular => {
                let same_device = attributes.id.device == directory.attributes.id.device;
                let precision = if same_device {
                    directory.precision
                } else {
                    self.root.file_systems.known_precision(attributes.id)
                };
                Ok(Some(Found { key, attributes, precision }))
            }
            Kind::Symlink => {
                let Some(target) = self.follow(key.as_str())? else { return Ok(None) };
                let (attributes, precision) = (target.attributes, target.precision);
                Ok((attributes.kind == Kind::Regular).then_some(Found { key, attributes, precision }))
            }
            _ => Ok(None),
        }
    }

    /// The kind of entry that a symbolic link, or a name of an unknown type, leads to.
    fn kind_of(&self, prefix: &str, name: &str) -> Result<Option<Kind>, StoreError> {
        let path = format!("{prefix}{name}");
        let Some(target) = self.follow(&path)? else { return Ok(None) };
        let Attributes { id, kind, .. } = target.attributes;
        if kind == Kind::Directory && self.is_above(prefix, id)? {
            warn(&path, "it leads to a directory above itself");
            return Ok(None);
        }
        Ok(Some(kind))
    }

    /// Follows a symbolic link. One that must not be followed leads to nothing.
    fn follow(&self, path: &str) -> Result<Option<Opened>, StoreError> {
        match self.root.look_up(path, Wait::Allowed) {
            Err(Failure::File(Errno::XDEV)) => {
                warn(path, "it leads out of the directory of the store, or has an absolute target");
                Ok(None)
            }
            Err(Failure::File(Errno::LOOP)) => {
                warn(path, "it leads to itself, or over too many others");
                Ok(None)
            }
            // A program that makes links before their targets has these for a moment.
            Err(Failure::LinkToNothing | Failure::Special | Failure::Private) => Ok(None),
            result => result.map_err(|failure| file_error(ACTION, path, failure)),
        }
    }

    /// True if a directory is that of the prefix, or above it. A listing that followed links to these would not end.
    fn is_above(&self, prefix: &str, id: FileId) -> Result<bool, StoreError> {
        let ancestors = prefix.match_indices('/').filter_map(|(end, _)| prefix.get(..end));
        for path in ancestors.chain(["."]) {
            let found =
                self.root.look_up(path, Wait::Allowed).map_err(|failure| file_error(ACTION, prefix, failure))?;
            if found.is_some_and(|found| found.attributes.id == id) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Frame {
    fn new(prefix: String, after: String) -> Self {
        Self { prefix, directory: None, children: VecDeque::new(), after, more: true, batch: 0 }
    }

    /// The next child, with the text in it after which the page begins.
    fn next(
        &mut self,
        walker: &Walker<'_>,
        missing: usize,
        state: &mut StateHash,
    ) -> Result<Option<(String, String)>, StoreError> {
        loop {
            if let Some(name) = self.children.pop_front() {
                let rest = self.after.strip_prefix(&name).unwrap_or_default().to_owned();
                self.after.clone_from(&name);
                return Ok(Some((name, rest)));
            }
            if !self.more {
                return Ok(None);
            }
            // Only directories without keys make a second pass necessary. Then there may be many of them.
            self.batch = self.batch.saturating_mul(2).max(missing).min(MAX_PAGE_ENTRIES.saturating_add(1));
            let batch = self.batch;
            self.open(walker, state)?;
            let Some(directory) = &self.directory else { return Ok(None) };
            let part = Part { prefix: &self.prefix, after: &self.after, limit: batch };
            let children = walker.read(directory, part, state)?;
            self.more = children.more;
            self.children = children.names.into();
        }
    }

    /// Opens the directory, unless it is open. It may have been removed.
    fn open(&mut self, walker: &Walker<'_>, state: &mut StateHash) -> Result<(), StoreError> {
        if self.directory.is_none() {
            self.directory = walker.open(&self.prefix)?;
            match &self.directory {
                Some(directory) => state.add(&self.prefix, &directory.attributes, directory.precision),
                None => state.set_unknown(),
            }
        }
        Ok(())
    }
}

/// Forgets the last children of outer directories, so that all together have not many more than one page needs. They
/// are read again if the listing gets there.
fn forget_children(frames: &mut [Frame], wanted: usize) {
    let mut excess = frames.iter().map(|frame| frame.children.len()).sum::<usize>().saturating_sub(wanted);
    for frame in frames {
        let dropped = excess.min(frame.children.len());
        if dropped > 0 {
            frame.children.truncate(frame.children.len().saturating_sub(dropped));
            frame.more = true;
            excess = excess.saturating_sub(dropped);
        }
    }
}

fn warn(path: &str, reason: &'static str) {
    if let Some(admitted) = WARNINGS.admit(reason) {
        tracing::warn!(path, left_out = admitted.left_out, "a symbolic link is not listed: {reason}");
    }
}
