//! Documents that cannot be read, and the nodes that they mark.
//!
//! Whoever asks for such a node is refused. Whoever asks for the nodes around it is told of them, and of this one that it is broken.

use meta::{
    Dialect, NodePath,
    data_type::TypeError,
    documents::{
        DocumentError, v3,
        write::{CONSOLIDATED, without_copies},
    },
    json::Json,
};
use store::Key;

/// The longest reason that is kept, in characters.
pub(crate) const MAX_REASON: usize = 200;

/// The reason why a node is not told: one of its documents that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the metadata in {key} cannot be read: {reason}")]
pub struct Broken {
    /// The document's key.
    pub key: Key,
    /// What is wrong, cut to a length that can be shown.
    pub reason: String,
}

/// A node that is not told because one of its documents cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenNode {
    /// Its path.
    pub path: NodePath,
    /// The dialect whose documents have that key; v3, where a `zarr.json` does not show whether it is the draft's.
    pub dialect: Dialect,
    /// The document, and what is wrong with it.
    pub problem: Broken,
}

impl Broken {
    pub(crate) fn new(key: &Key, source: &DocumentError) -> Self {
        Self { key: key.clone(), reason: source.to_string().chars().take(MAX_REASON).collect() }
    }
}

/// Whether a document asks for something that is not supported. It is well-formed all the same, so that its node can be told as it is stored.
pub(crate) fn is_unsupported(error: &DocumentError) -> bool {
    matches!(
        error,
        DocumentError::Extension { .. }
            | DocumentError::Unsupported { .. }
            | DocumentError::DataType { source: TypeError::Unknown { .. }, .. }
    )
}

/// Reads a `zarr.json` of v3. A group is read without its consolidated metadata where these are broken: they are copies.
pub(crate) fn read_v3(document: Json) -> Result<v3::Node, DocumentError> {
    let error = match v3::read(document.clone()) {
        Err(error) if document.get(CONSOLIDATED).is_some_and(|copies| is_ignorable(&copies)) => error,
        read => return read,
    };
    match v3::read(without_copies(&document)) {
        Ok(v3::Node::Group(mut model)) => {
            model.document = document;
            Ok(v3::Node::Group(model))
        }
        _ => Err(error),
    }
}

/// Whether consolidated metadata are not said to be such as has to be understood.
fn is_ignorable(copies: &Json) -> bool {
    copies.get("must_understand").is_none_or(|it| it.as_str() != "true")
}
