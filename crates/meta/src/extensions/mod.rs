//! Extensions: what a document says that a reader may have to understand.
//!
//! Specification: [ZEP 10](https://zarr.dev/zeps/draft/ZEP0010.html), whose examples are the extensions known here; the draft's own list is
//! read the same way. A new extension is one file with an implementation of `Code` and one line in `KNOWN`.
//!
//! An extension that is not known makes its node unreadable, unless it need not be understood. One that is known is read strictly, and has
//! its effect whether it must be understood or not. Where its configuration is wrong, or it is on a kind of node that it is not for, it is as
//! if it were not known: the node is refused with the place of the mistake if it must be understood, and else the extension is kept and
//! means nothing.

use serde_json::{Map, Value};

use crate::{
    data_type::DataType,
    documents::{DocumentError, JsonPath},
};

mod entry;
mod multiscale_arrays;
mod offset;
mod skip_empty_chunks;
mod statistics;
mod tiered_storage;

pub(crate) use entry::{ExtensionEntry, resolve_extensions};

/// Every extension that is known.
static HANDLERS: &[&dyn ExtensionHandler] = &[
    &offset::Offset,
    &statistics::ArrayStatistics,
    &skip_empty_chunks::SkipEmptyChunks,
    &multiscale_arrays::MultiscaleArrays,
    &tiered_storage::TieredStorage,
];

/// An entry of the `extensions` of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Extension {
    /// Its name, or the draft's URI.
    pub name: String,
    /// Its configuration; empty if there is none.
    pub configuration: Map<String, Value>,
    /// True if a reader that does not know it must refuse the node.
    pub must_understand: bool,
    /// Its effect.
    pub effect: ExtensionEffect,
}

/// The effect of an extension on its node.
#[derive(Clone, Debug, PartialEq)]
pub enum ExtensionEffect {
    /// Nothing: it is not known, or wrong, and need not be understood.
    Ignored,
    /// The array is a view that starts at these indices of the array without the extension.
    View {
        /// One index per dimension, at most the extent.
        offset: Vec<u64>,
    },
    /// All elements of the array are within this range.
    Statistics {
        /// The least element, as it is in memory.
        min: Vec<u8>,
        /// The largest.
        max: Vec<u8>,
    },
    /// Chunks that are full of the fill value are not stored.
    SkipEmptyChunks,
    /// Other nodes are named.
    Links(Vec<Link>),
}

/// Another node that an extension of a group names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The extension's name.
    pub extension: String,
    /// The location in the group's node document: a JSON pointer.
    pub pointer: String,
    /// The path that it names, from the group on.
    pub path: String,
}

/// True if an extension stays valid when elements of its array were written, or a change of shape added or removed
/// some. One that does not is dropped by such a change. Unknown ones stay.
pub fn survives_write(name: &str) -> bool {
    handler(name).is_none_or(ExtensionHandler::survives_write)
}

/// The start of the view that an array's extensions make of it: the sum of their offsets.
pub(crate) fn view_offset(extensions: &[Extension], rank: usize) -> Vec<u64> {
    let mut origin = vec![0_u64; rank];
    for extension in extensions {
        if let ExtensionEffect::View { offset } = &extension.effect {
            origin.iter_mut().zip(offset).for_each(|(origin, offset)| *origin = origin.saturating_add(*offset));
        }
    }
    origin
}

/// The node that has an extension.
#[derive(Clone, Debug)]
pub(crate) enum NodeContext<'a> {
    /// An array.
    Array {
        /// Its shape, as the extensions before this one leave it.
        shape: Vec<u64>,
        /// The type of its elements.
        data_type: &'a DataType,
    },
    /// A group.
    Group,
    /// A whole hierarchy of the draft.
    Hierarchy,
}

impl NodeContext<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Array { .. } => "an array",
            Self::Group => "a group",
            Self::Hierarchy => "a hierarchy",
        }
    }
}

/// The handler of an extension.
pub(crate) trait ExtensionHandler: Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Reads its configuration. `Ok(None)` says that such a node cannot have it.
    fn read(
        &self,
        configuration: &JsonPath<'_>,
        context: &NodeContext<'_>,
    ) -> Result<Option<ExtensionEffect>, DocumentError>;

    /// See [`survives_write`].
    fn survives_write(&self) -> bool {
        true
    }
}

fn handler(name: &str) -> Option<&'static dyn ExtensionHandler> {
    HANDLERS.iter().copied().find(|handler_entry| handler_entry.name() == name)
}

/// Reads a list of paths from a group on.
fn links(extension: &str, list: &JsonPath<'_>) -> Result<Vec<Link>, DocumentError> {
    let link = |place: JsonPath<'_>| {
        let path = place.text()?;
        let invalid_path = |reason: &str| place.invalid(format!("is no path from the group on: {reason}"));
        if path.is_empty() || path.starts_with('/') {
            return Err(invalid_path("it is empty or begins with /"));
        }
        crate::NodePath::parse(path).map_err(|error| invalid_path(&error.to_string()))?;
        Ok(Link { extension: extension.to_owned(), pointer: place.pointer.clone(), path: path.to_owned() })
    };
    list.items()?.map(link).collect()
}

#[cfg(test)]
mod tests;
