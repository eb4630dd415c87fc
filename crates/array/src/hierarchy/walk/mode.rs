//! Which nodes a walk visits.

use store::Cursor;

/// What is meant where a path answers in several dialects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DialectMode {
    /// The members of a group are nodes of its own dialect.
    Same,
    /// They are nodes of any, each in the dialect that is preferred.
    Each,
}

/// Which topmost nodes are walked over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Top {
    /// Those that can be read; for others the walk fails.
    Readable,
    /// Broken ones, too.
    Any,
}

/// The part of a group's members that is told.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// The number of members at the most.
    pub(crate) limit: usize,
    /// The beginning; `None` for the first member. After the walk, the beginning of the next page; `None` where this is the last.
    pub(crate) cursor: Option<Cursor>,
}
