//! The documents of the three dialects, read strictly and kept whole.
//!
//! [`v2`], [`v3`] and [`draft`] read documents into an [`ArrayModel`](crate::ArrayModel) or a [`GroupModel`]. What a document says
//! that its dialect does not allow is refused with its place, a [JSON pointer](https://www.rfc-editor.org/rfc/rfc6901), and so is
//! what has to be understood and is not. Everything else is kept in `document`, also what nobody here knows.
//!
//! Documents are kept as the text that they are ([`Json`]): only the members that describe the node become values. Attributes are text, too.

use bytes::Bytes;

use crate::{
    Dialect, NodePath,
    extensions::{Extension, ExtensionEffect, Link},
    json::Json,
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
pub(crate) use parts::{XARRAY_NAMES, object as members};
pub use patch::{ElementImpact, NodePatch, PatchError};

/// Reads a document without looking into it.
pub fn parse_object(document: impl Into<Bytes>) -> Result<Json, DocumentError> {
    json::read(document)
}

/// A group, whatever wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupModel {
    /// The dialect of its document.
    pub dialect: Dialect,
    /// The user's attributes.
    pub attributes: Json,
    /// The extensions (ZEP 10) that the document names, all of them known or not to be understood.
    pub extensions: Vec<Extension>,
    /// The documents of the nodes below, if the group's own document has them (zarr-python's consolidated metadata in
    /// v3).
    pub consolidated: Option<ConsolidatedMetadata>,
    /// The document as it was read, with whatever else it has.
    pub document: Json,
}

/// The documents of many nodes in one: a copy, which may be older than the documents themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsolidatedMetadata {
    /// The documents by keys, or by paths to which `suffix` is appended to make them keys.
    metadata: Json,
    suffix: &'static str,
}

impl GroupModel {
    /// The arrays below that the group's extensions name: levels of a pyramid, arrays on slow storage.
    pub fn links(&self) -> Vec<Link> {
        let links = |extension: &Extension| match &extension.effect {
            ExtensionEffect::Links(links) => links.clone(),
            _ => Vec::new(),
        };
        self.extensions.iter().flat_map(links).collect()
    }
}

impl ConsolidatedMetadata {
    /// Reads an object of keys, or of paths to which `suffix` is appended to make them keys.
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
    /// objects that have not been checked.
    pub fn documents(&self) -> impl Iterator<Item = (String, Json)> + '_ {
        self.metadata.members().filter_map(|member| {
            let path = NodePath::parse(&member.name()?).ok()?;
            Some((format!("{}{}", path.relative(), self.suffix), member.value))
        })
    }
}
