//! The keys of metadata documents.

use zarrd_meta::{NodePath, documents::DocumentError};
use zarrd_store::{Key, Prefix};

use crate::error::ArrayError;

/// The prefix of a node's keys. Fails with [`ArrayError::NoSuchNode`] if the path is too long for any key to lie below
/// it.
pub(crate) fn node_prefix(path: &NodePath) -> Result<Prefix, ArrayError> {
    Prefix::parse(&path.key_prefix()).map_err(|_| ArrayError::NoSuchNode { path: path.clone() })
}

/// The key of `name` below a prefix; `None` if it would be too long to be a key, so that it cannot exist.
pub(crate) fn join_key(prefix: &Prefix, name: &str) -> Option<Key> {
    Key::parse(&format!("{}{name}", prefix.as_str())).ok()
}

/// The error of a document.
pub(crate) fn invalid_document(key: &Key, source: DocumentError) -> ArrayError {
    ArrayError::Document { key: key.clone(), source }
}
