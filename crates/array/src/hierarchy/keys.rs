//! Which keys a node has.

use std::sync::Arc;

use meta::{Dialect, NodePath, documents::draft, names::NameError};
use store::{Key, Prefix};

use super::{NodeError, walk::Form};
use crate::find::DraftRoot;

/// The keys of a node's own documents: what it is, and in v2 its attributes. Fails where a key would be too long.
pub(super) fn documents(
    path: &NodePath,
    dialect: Dialect,
    form: Form,
    root: Option<&Arc<DraftRoot>>,
) -> Result<Vec<Key>, NodeError> {
    let own = path.key_prefix();
    let names = match (dialect, form, root) {
        (Dialect::V3, ..) => vec![format!("{own}zarr.json")],
        (Dialect::V2, Form::Array, _) => vec![format!("{own}.zarray"), format!("{own}.zattrs")],
        (Dialect::V2, Form::Group, _) => vec![format!("{own}.zgroup"), format!("{own}.zattrs")],
        (Dialect::Draft, form, Some(root)) => {
            let below = path.below(&root.path).unwrap_or_default();
            let key = match form {
                Form::Array => root.entry.array_key(below),
                Form::Group => root.entry.group_key(below),
            };
            vec![format!("{}{key}", root.prefix.as_str())]
        }
        (Dialect::Draft, _, None) => Vec::new(),
    };
    names.iter().map(|name| Key::parse(name).map_err(|_| too_long(dialect, path))).collect()
}

/// What all keys of a node and of those below it begin with, and the keys that do not.
pub(super) struct Extent {
    pub(super) prefixes: Vec<Prefix>,
    pub(super) keys: Vec<Key>,
}

/// Where a node is, with everything below it.
pub(super) fn extent(path: &NodePath, dialect: Dialect, root: Option<&Arc<DraftRoot>>) -> Result<Extent, NodeError> {
    let parse = |prefix: &str| Prefix::parse(prefix).map_err(|_| too_long(dialect, path));
    let Some(root) = root.filter(|_| dialect == Dialect::Draft) else {
        return Ok(Extent { prefixes: vec![parse(&path.key_prefix())?], keys: Vec::new() });
    };
    let below = path.below(&root.path).unwrap_or_default();
    let own = root.prefix.as_str();
    // A node `/foo2` has none of these keys where the node is `/foo`: they end with the name, or with `/`.
    let prefixes = vec![
        parse(&format!("{own}{}", draft::children_prefix(below)))?,
        parse(&format!("{own}{}", draft::chunk_prefix(below)))?,
    ];
    let mut keys = documents(path, dialect, Form::Array, Some(root))?;
    keys.extend(documents(path, dialect, Form::Group, Some(root))?);
    if below.is_empty() {
        keys.extend(Key::parse(&format!("{own}zarr.json")));
    }
    Ok(Extent { prefixes, keys })
}

/// A node whose keys would be too long has no name that is allowed.
pub(super) fn too_long(dialect: Dialect, path: &NodePath) -> NodeError {
    let name = path.name().unwrap_or_default().chars().take(64).collect();
    let source =
        NameError { dialect, name, reason: "the keys of the node would be longer than the limit of 1024 bytes" };
    NodeError::Name { path: path.clone(), source }
}
