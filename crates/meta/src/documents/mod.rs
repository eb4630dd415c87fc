//! The documents of the three dialects, read strictly and kept whole.
//!
//! [`v2`], [`v3`] and [`draft`] read documents into an [`ArrayModel`](crate::ArrayModel) or a [`GroupModel`]. What a document says
//! that its dialect does not allow is refused with its place, a [JSON pointer](https://www.rfc-editor.org/rfc/rfc6901), and so is
//! what has to be understood and is not. Everything else is kept in `document`, also what nobody here knows.
//!
//! Documents are JSON. Two things are read that are not of the standard, or are left open by it:
//!
//! - the bare words `NaN`, `Infinity` and `-Infinity`, which zarr-python writes in attributes. They are read as strings of the same text;
//! - a name that an object has twice. The last one counts, as in Python.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    Dialect, NodePath,
    extensions::{Extension, Link, Meaning},
};

mod change;
pub mod draft;
mod error;
pub(crate) mod json;
mod parts;
mod place;
#[cfg(test)]
mod tests;
pub mod v2;
pub mod v3;
pub mod write;

pub use change::{ChangeError, Changes, ElementsChange};
pub use error::{DocumentError, Feature};
pub(crate) use parts::{XARRAY_NAMES, object as members};
pub(crate) use place::Place;

/// Reads a document without looking into it.
pub fn object(document: &[u8]) -> Result<Map<String, Value>, DocumentError> {
    json::read(document).map(json::into_object)
}

/// A group, whatever wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupModel {
    /// Which dialect its document is of.
    pub dialect: Dialect,
    /// The user's attributes.
    pub attributes: Map<String, Value>,
    /// The extensions (ZEP 10) that the document names, all of them known or not to be understood.
    pub extensions: Vec<Extension>,
    /// The documents of the nodes below, where the group's own document has them (zarr-python's consolidated metadata in v3).
    pub consolidated: Option<Consolidated>,
    /// The document as it was read, with whatever else it has.
    pub document: Map<String, Value>,
}

/// The documents of many nodes in one: a copy, which may be older than the documents themselves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Consolidated {
    /// The documents by the keys that they have below the prefix of the group, such as `a/b/.zarray` or `a/b/zarr.json`. They are
    /// objects that have not been looked into.
    pub documents: BTreeMap<String, Map<String, Value>>,
}

impl GroupModel {
    /// The arrays below that the group's extensions name: levels of a pyramid, arrays on slow storage.
    pub fn links(&self) -> Vec<Link> {
        let links = |extension: &Extension| match &extension.meaning {
            Meaning::Links(links) => links.clone(),
            _ => Vec::new(),
        };
        self.extensions.iter().flat_map(links).collect()
    }
}

impl Consolidated {
    /// Reads an object of keys, or of paths to which `suffix` is appended to make them keys.
    fn parse(metadata: &Place<'_>, suffix: &str) -> Result<Self, DocumentError> {
        let mut documents = BTreeMap::new();
        for name in metadata.object()?.keys() {
            let place = metadata.required(name)?;
            let document = place.object()?.clone();
            let path = NodePath::parse(name).map_err(|error| place.invalid(format!("is not a key: {error}")))?;
            documents.insert(format!("{}{suffix}", path.relative()), document);
        }
        Ok(Self { documents })
    }
}
