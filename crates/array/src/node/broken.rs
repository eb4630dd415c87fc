//! Documents that cannot be read, and the nodes that they break.
//!
//! A request for such a node is an error. A request for the nodes around it succeeds, and lists it as broken.

use zarrd_meta::{
    Dialect, NodePath,
    data_type::TypeError,
    documents::{
        DocumentError, v3,
        write::{CONSOLIDATED, strip_consolidated},
    },
    json::Json,
};
use zarrd_operations::BrokenNode;
use zarrd_store::Key;

/// The longest reason that is kept, in characters; a longer one is truncated.
pub(crate) const MAX_REASON: usize = 200;

/// The error of a document that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the metadata in {key} cannot be read: {reason}")]
pub struct Broken {
    /// The document's key.
    pub key: Key,
    /// The error message, truncated.
    pub reason: String,
}

impl Broken {
    pub(crate) fn of(node: &BrokenNode) -> Self {
        Self { key: node.key.clone(), reason: node.reason.clone() }
    }

    pub(crate) fn at(self, path: NodePath, dialect: Dialect) -> BrokenNode {
        BrokenNode { path, dialect, key: self.key, reason: self.reason }
    }

    pub(crate) fn new(key: &Key, source: &DocumentError) -> Self {
        Self { key: key.clone(), reason: source.to_string().chars().take(MAX_REASON).collect() }
    }
}

/// True if a document is well-formed, but asks for something that is not supported, so that its node can still be
/// returned as stored.
pub(crate) fn is_unsupported(error: &DocumentError) -> bool {
    matches!(
        error,
        DocumentError::Extension { .. }
            | DocumentError::Unsupported { .. }
            | DocumentError::DataType { source: TypeError::Unknown { .. }, .. }
    )
}

/// Reads a `zarr.json` of v3. Consolidated metadata of a group that cannot be read are ignored, since they are copies.
pub(crate) fn read_v3(document: Json) -> Result<v3::Node, DocumentError> {
    let error = match v3::read(document.clone()) {
        Err(error) if document.get(CONSOLIDATED).is_some_and(|copies| is_ignorable(&copies)) => error,
        read => return read,
    };
    match v3::read(strip_consolidated(&document)) {
        Ok(v3::Node::Group(mut model)) => {
            model.document = document;
            Ok(v3::Node::Group(model))
        }
        _ => Err(error),
    }
}

/// True if consolidated metadata may be ignored (`must_understand` is not `true`).
fn is_ignorable(copies: &Json) -> bool {
    copies.get("must_understand").is_none_or(|it| it.as_str() != "true")
}
