//! The nodes that a walk visits.

use zarrd_operations::Depth;
use zarrd_store::{Cursor, Scanned};

/// The number of levels that are described. JSON nests twice as deep, which is as deep as readers and the stack allow.
pub(crate) const MAX_LEVELS: u32 = 64;

/// The nodes that a walk visits, and the documents in which it finds them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkOptions {
    pub(crate) depth: Depth,
    pub(crate) mode: DialectMode,
    pub(crate) top: Top,
    pub(crate) below: Below,
    pub(crate) failed_mounts: FailedMounts,
    pub(crate) caching: Caching,
}

/// The use of what a walk reads for later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caching {
    /// None: a tree is rarely changed as a whole twice.
    None,
    /// Its documents are cached: a tree is described again and again.
    Documents,
}

/// The effect of a mounted store that fails, or does not answer in time, on a walk of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailedMounts {
    /// The walk fails.
    Fail,
    /// The mount is a broken node, and nothing below it is visited.
    Broken,
}

/// The dialects of a group's members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DialectMode {
    /// That of the group.
    Same,
    /// Any; each member is in the preferred dialect that has it.
    Each,
}

/// The topmost nodes that a walk accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Top {
    /// Readable ones; the walk fails for others.
    Readable,
    /// Broken ones, too.
    Any,
}

/// The source of the nodes below a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Below {
    /// Their own documents.
    Documents,
    /// Consolidated metadata of the group, if it has some and the store says that they are trusted.
    Copies,
}

impl WalkOptions {
    /// A walk over readable nodes of one dialect, by their own documents.
    pub(crate) fn new(depth: Depth) -> Self {
        Self {
            depth,
            mode: DialectMode::Same,
            top: Top::Readable,
            below: Below::Documents,
            failed_mounts: FailedMounts::Fail,
            caching: Caching::None,
        }
    }
}

/// A page of a group's members.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// The number of members at most.
    pub(crate) limit: usize,
    /// The start; `None` for the first member. After the walk, the start of the next page; `None` after the last.
    pub(crate) cursor: Option<Cursor>,
    /// The keys and prefixes directly below the group that belong to no node, if they are listed. Empty before the walk.
    pub(crate) files: Option<Vec<Scanned>>,
}
