//! Reading and writing of metadata documents in three dialects.
//!
//! [`v2`], [`v3`] and [`draft`] read documents into an [`ArrayModel`](crate::ArrayModel) or a [`GroupModel`]. A member
//! that the dialect does not allow is an error with a [JSON pointer](https://www.rfc-editor.org/rfc/rfc6901), and so is
//! an unsupported member that must be understood. Everything else is preserved in `document`, including unknown
//! members.
//!
//! Documents are kept as text ([`Json`]): only the members that describe the node are parsed into values. Attributes
//! stay text.

use bytes::Bytes;

use crate::{
    Dialect, NodePath,
    extensions::{Extension, ExtensionEffect, Link},
    json::Json,
    limits::MAX_OVERSIZED_DOCUMENT,
    text::pointer_to,
};

pub mod draft;
mod error;
pub(crate) mod json;
mod json_path;
mod parts;
mod patch;
#[cfg(test)]
mod tests;
pub mod v2;
pub mod v3;
pub mod write;

pub use error::{DocumentError, Feature};
pub(crate) use json_path::JsonPath;
pub(crate) use parts::object as members;
pub use patch::{ElementImpact, NodePatch, PatchError};

/// Parses a document without interpreting it.
pub fn parse_object(document: impl Into<Bytes>) -> Result<Json, DocumentError> {
    json::read(document)
}

/// Parses a document of up to [`MAX_OVERSIZED_DOCUMENT`] bytes, to remove consolidated metadata from it.
pub fn parse_oversized(document: impl Into<Bytes>) -> Result<Json, DocumentError> {
    json::read_up_to(MAX_OVERSIZED_DOCUMENT, document.into())
}

/// A group of any dialect.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupModel {
    /// The dialect of its document.
    pub dialect: Dialect,
    /// The user's attributes.
    pub attributes: Json,
    /// The extensions (ZEP 10) in the document; each of them is supported or optional.
    pub extensions: Vec<Extension>,
    /// The consolidated metadata in the group's own document (zarr-python in v3).
    pub consolidated: Option<ConsolidatedMetadata>,
    /// The document as read, including unknown members.
    pub document: Json,
}

/// Consolidated metadata: copies of many nodes' documents, which may be older than the originals.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsolidatedMetadata {
    /// The documents by key, or by path if `suffix` completes them to keys.
    metadata: Json,
    suffix: &'static str,
}

impl GroupModel {
    /// The arrays that the group's extensions link to, such as the levels of a pyramid.
    pub fn links(&self) -> Vec<Link> {
        let links = |extension: &Extension| match &extension.effect {
            ExtensionEffect::Links(links) => links.clone(),
            _ => Vec::new(),
        };
        self.extensions.iter().flat_map(links).collect()
    }
}

impl ConsolidatedMetadata {
    /// Reads an object of keys, or of paths that `suffix` completes to keys.
    fn parse(metadata: Json, pointer: &str, suffix: &'static str) -> Result<Self, DocumentError> {
        let invalid = |pointer: String, reason: String| DocumentError::Invalid { pointer, reason };
        if !metadata.is_object() {
            return Err(invalid(pointer.to_owned(), "is not an object".to_owned()));
        }
        for member in metadata.members() {
            let name = member.name().unwrap_or_default();
            let place = || pointer_to(pointer, &name);
            if !member.value.is_object() {
                return Err(invalid(place(), "is not an object".to_owned()));
            }
            NodePath::parse(&name).map_err(|error| invalid(place(), format!("is not a key: {error}")))?;
        }
        Ok(Self { metadata, suffix })
    }

    /// The documents with their keys below the prefix of the group, such as `a/b/.zarray` or `a/b/zarr.json`. They are
    /// objects that have not been validated.
    pub fn documents(&self) -> impl Iterator<Item = (String, Json)> + '_ {
        self.metadata.members().filter_map(|member| {
            let path = NodePath::parse(&member.name()?).ok()?;
            Some((format!("{}{}", path.relative(), self.suffix), member.value))
        })
    }
}
