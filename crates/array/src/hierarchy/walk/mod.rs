//! Walking over a hierarchy: which nodes there are, with their documents.
//!
//! The children of a group are found by listing what is directly below it, level by level, and never below an array. A prefix without a document is a group where there is a node below it,
//! of the dialect that is found first. A node of which a document cannot be read is found as any other: it is marked as [broken](Branch::broken) and not looked into. The whole is as of one commit: where any was made meanwhile, everything that was looked at is compared with one snapshot and everything
//! that was listed is listed again.

pub(crate) mod documents;
pub(crate) mod listing;
pub(crate) mod mode;
pub(crate) mod page;
pub(crate) mod probe;
pub(crate) mod scan;
pub(crate) mod snapshot_reader;
pub(crate) mod top;
pub(crate) mod walker;
