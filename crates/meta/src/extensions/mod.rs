//! Extensions of nodes that readers may have to understand.
//!
//! Specification: [ZEP 10](https://zarr.dev/zeps/draft/ZEP0010.html), whose examples are the supported extensions; the
//! draft's list of extensions is read in the same way. A new extension is a module with an implementation of
//! `ExtensionHandler` and an entry in `HANDLERS`.
//!
//! An unknown extension makes its node unreadable if it must be understood. A known one is validated, and has its
//! effect whether or not it must be understood. If its configuration is invalid, or its node has the wrong type, it is
//! treated as unknown: an error with its location if it must be understood, otherwise it is preserved without effect.

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

/// The supported extensions.
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
    /// True if readers that do not support it must reject the node.
    pub must_understand: bool,
    /// Its effect.
    pub effect: ExtensionEffect,
}

/// The effect of an extension on its node.
#[derive(Clone, Debug, PartialEq)]
pub enum ExtensionEffect {
    /// None: the extension is optional, and unknown or invalid.
    Ignored,
    /// The array is a view that starts at these indices of the stored array.
    View {
        /// One index per dimension, at most its extent.
        offset: Vec<u64>,
    },
    /// All elements of the array are within a range.
    Statistics {
        /// The smallest element, as it is in memory.
        min: Vec<u8>,
        /// The largest element.
        max: Vec<u8>,
    },
    /// Chunks that consist of the fill value are not stored.
    SkipEmptyChunks,
    /// The extension links to other nodes.
    Links(Vec<Link>),
}

/// A link from a group's extension to another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The extension's name.
    pub extension: String,
    /// The location in the group's node document: a JSON pointer.
    pub pointer: String,
    /// The linked path, relative to the group.
    pub path: String,
}

/// True if an extension stays valid when elements of its array are written, added or removed. Such changes drop other
/// extensions. Unknown ones stay.
pub fn survives_write(name: &str) -> bool {
    handler(name).is_none_or(ExtensionHandler::survives_write)
}

/// The start of the view that an array's extensions define: the sum of their offsets.
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
        /// The shape after the preceding extensions.
        shape: Vec<u64>,
        /// The data type of the elements.
        data_type: &'a DataType,
    },
    /// A group.
    Group,
    /// A hierarchy of the draft.
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

/// The implementation of an extension.
pub(crate) trait ExtensionHandler: Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Reads the configuration. `Ok(None)` means that the extension is not for this type of node.
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

/// Reads a list of paths relative to a group.
fn links(extension: &str, list: &JsonPath<'_>) -> Result<Vec<Link>, DocumentError> {
    let link = |item: JsonPath<'_>| {
        let path = item.text()?;
        let invalid_path = |reason: &str| item.invalid(format!("is not a path relative to the group: {reason}"));
        if path.is_empty() || path.starts_with('/') {
            return Err(invalid_path("it is empty or begins with /"));
        }
        crate::NodePath::parse(path).map_err(|error| invalid_path(&error.to_string()))?;
        Ok(Link { extension: extension.to_owned(), pointer: item.pointer.clone(), path: path.to_owned() })
    };
    list.items()?.map(link).collect()
}

#[cfg(test)]
mod tests;
