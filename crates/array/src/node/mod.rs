//! Nodes as their metadata documents describe them.
//!
//! Each file defines one thing and depends on no other part of the crate but errors:
//!
//! - [`array::Array`]: an array's model with its codec chains, the form in which it is read and written;
//! - [`resolved`]: the array or group at a path, with every version of every document that the answer was based on;
//! - [`counterpart`]: what the other one of v2 and v3 has at the same path;
//! - [`read_set`]: those versions, and how they become the preconditions of a commit;
//! - [`cache::NodeCache`]: resolved arrays, so that a document is parsed once for each of its versions;
//! - [`documents`]: the documents that a node has, and [`document_cache`]: those that have been read and checked;
//! - [`keys`]: the keys of documents;
//! - [`broken`]: documents that cannot be read, and the nodes that they mark.

pub(crate) mod array;
pub(crate) mod broken;
pub(crate) mod cache;
pub(crate) mod counterpart;
pub(crate) mod document_cache;
pub(crate) mod documents;
pub(crate) mod keys;
pub(crate) mod kind;
pub(crate) mod read_set;
pub(crate) mod resolved;
