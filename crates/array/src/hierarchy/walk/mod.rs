//! Walking a hierarchy: its nodes, with their documents.
//!
//! The children of a group are found by listing the names directly below it, level by level, and never below an array.
//! A prefix without a document is an implicit group if there is a node below it, whose dialect it has. A node with a
//! document that cannot be read is visited like any other, but marked as
//! [broken](crate::metadata::tree::NodeTree::broken), and its members are not.
//!
//! Of a [distant](crate::context::Context::is_distant_at) store, the listings and documents of a [level] are read many
//! at a time before its groups are visited. Without listings the children are those that consolidated metadata or
//! `multiscales` name; see [`named`]. Where consolidated metadata are trusted, nodes are taken from them; see
//! [`copies`].
//!
//! A walk of the root of several stores leaves out those that fail or do not answer in time; see [`unavailable`].
//!
//! The result is of one commit: if there was one meanwhile, the versions of all documents are compared with one
//! snapshot, and everything that was listed is listed again. A directory is not, if its scans have the states that an
//! earlier walk recorded; see [`ListingStates`](crate::listing_states::ListingStates).

pub(crate) mod ahead;
pub(crate) mod copies;
pub(crate) mod documents;
pub(crate) mod level;
pub(crate) mod listing;
pub(crate) mod mode;
pub(crate) mod named;
pub(crate) mod node_documents;
mod opened;
pub(crate) mod page;
pub(crate) mod probe;
pub(crate) mod scan;
mod scanned_part;
mod scanned_versions;
pub(crate) mod snapshot_reader;
pub(crate) mod top;
pub(crate) mod trusted;
pub(crate) mod unavailable;
pub(crate) mod unlisted;
pub(crate) mod walker;
