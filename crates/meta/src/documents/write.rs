//! Stored documents of nodes.

use std::collections::HashSet;

use serde_json::{Value, json};

pub use super::v3::CONSOLIDATED;
use super::{json::ATTRIBUTES, parts::object};
use crate::{
    Dialect,
    json::{Change, Json, ObjectEdit},
};

/// The stored documents of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredNode {
    /// The node's document: a `.zarray`, a `.zgroup`, a `zarr.json`, or a document of the draft.
    pub document: Json,
    /// The `.zattrs` of v2, if stored; `None` in other dialects, which have attributes in the document.
    pub attributes: Option<Json>,
}

impl StoredNode {
    /// The documents of a node. In v2 `attributes` become the `.zattrs`, unless they are empty.
    pub fn new(dialect: Dialect, document: &Json, attributes: &Json) -> Self {
        let is_stored = dialect == Dialect::V2 && attributes.members().next().is_some();
        Self { document: document.clone(), attributes: is_stored.then(|| attributes.clone()) }
    }

    /// The only document of a node of v3 or the draft.
    pub fn single_document(document: Json) -> Self {
        Self { document, attributes: None }
    }

    /// Splits a node document into stored documents. In v2 the attributes become the `.zattrs`, unless they are empty.
    pub fn from_node_document(dialect: Dialect, document: &Json) -> Self {
        if dialect != Dialect::V2 {
            return Self::single_document(document.clone());
        }
        Self::new(dialect, &document.without(ATTRIBUTES), &document.get(ATTRIBUTES).unwrap_or_default())
    }

    /// The node document: in v2 the `.zarray` or `.zgroup` with the `.zattrs` as its `attributes`.
    pub fn node_document(&self, dialect: Dialect) -> Json {
        match dialect {
            Dialect::V2 => join_v2(&self.document, &self.attributes.clone().unwrap_or_default()),
            Dialect::V3 | Dialect::Draft => self.document.clone(),
        }
    }

    /// The documents in the layout of new ones.
    #[must_use]
    pub fn formatted(&self) -> Self {
        Self { document: self.document.formatted(), attributes: self.attributes.as_ref().map(Json::formatted) }
    }

    /// True if two nodes have the same texts, and nothing surrounds them.
    pub fn is_identical(&self, other: &Self) -> bool {
        let attributes = match (&self.attributes, &other.attributes) {
            (Some(one), Some(other)) => one.is_identical(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        attributes && self.document.is_identical(&other.document)
    }

    /// True if two nodes have equal values, regardless of notation. Empty attributes are equal to missing ones.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        let [one, two] = [self, other].map(|node| node.attributes.clone().unwrap_or_default());
        self.document.is_equivalent(&other.document) && one.is_equivalent(&two)
    }
}

/// The node document of v2: the document with the `.zattrs` as its `attributes`.
pub fn join_v2(document: &Json, attributes: &Json) -> Json {
    // A member `attributes` of the `.zarray` is not the user's attributes.
    document.with(ATTRIBUTES, Change::SetText(attributes.clone()))
}

/// The entry point of a new draft hierarchy, as zarr-python 2 writes it.
pub fn draft_entry_point() -> Json {
    let document = object([
        ("extensions", json!([])),
        ("metadata_encoding", json!("https://purl.org/zarr/spec/protocol/core/3.0")),
        ("metadata_key_suffix", json!(".json")),
        ("zarr_format", json!("https://purl.org/zarr/spec/protocol/core/3.0")),
    ]);
    Json::pretty(&Value::Object(document))
}

/// The document of a v3 group without consolidated metadata.
pub fn strip_consolidated(document: &Json) -> Json {
    document.without(CONSOLIDATED)
}

/// The document of a v3 group with empty consolidated metadata.
pub fn with_empty_consolidated(document: &Json) -> Json {
    let empty = json!({"kind": "inline", "must_understand": false, "metadata": {}});
    document.with(CONSOLIDATED, Change::Set(empty))
}

/// The change of a node in consolidated metadata.
#[derive(Clone, Debug)]
pub struct ConsolidatedEntry<'a> {
    /// The path of the node below the group with the metadata: `a/b`, empty for the group.
    pub path: &'a str,
    /// The new documents of the node, without its descendants; `None` if the node and its descendants are removed.
    pub node: Option<&'a StoredNode>,
}

/// Updates consolidated metadata: the `.zmetadata` in v2, the `zarr.json` of a group in v3. Removals are applied before
/// changes. A document without such metadata does not change, and the bytes of other nodes are preserved.
///
/// In v3 the group itself has no entry. As by zarr-python, other groups are written with empty consolidated metadata of
/// their own, since their members have entries.
pub fn update_consolidated<'a>(
    dialect: Dialect,
    document: &Json,
    copies: impl Iterator<Item = ConsolidatedEntry<'a>>,
) -> Json {
    let has_metadata = match dialect {
        Dialect::V2 => document.get("metadata"),
        Dialect::V3 => document.get(CONSOLIDATED).and_then(|consolidated| consolidated.get("metadata")),
        Dialect::Draft => None,
    };
    if !has_metadata.is_some_and(|metadata| metadata.is_object()) {
        return document.clone();
    }
    let mut metadata = ObjectEdit::default();
    let mut replaced = HashSet::new();
    for ConsolidatedEntry { path: below, node } in copies {
        match (dialect, node) {
            (Dialect::V2, Some(node)) => edit_consolidated_v2(&mut metadata, below, node),
            (_, Some(_)) if below.is_empty() => {}
            (_, Some(node)) => metadata.change(below, Change::Match(consolidated_v3(node))),
            (Dialect::V3 | Dialect::Draft, None) if below.is_empty() => {}
            (_, None) => drop(replaced.insert(below)),
        }
    }
    replaced.into_iter().for_each(|below| metadata.remove_subtree(below));
    match dialect {
        Dialect::V2 => document.with("metadata", Change::edit(metadata)),
        Dialect::V3 | Dialect::Draft => {
            document.with(CONSOLIDATED, Change::edit(ObjectEdit::single("metadata", Change::edit(metadata))))
        }
    }
}

fn edit_consolidated_v2(metadata: &mut ObjectEdit, below: &str, node: &StoredNode) {
    let key = |name: &str| if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
    let (present, absent, change) = match is_array_v2(&node.document) {
        true => (".zarray", ".zgroup", Change::Match(node.document.clone())),
        // zarr-python 3 adds consolidated metadata to the entries of v2 groups, which stays.
        false => (".zgroup", ".zarray", Change::MatchMembers(node.document.clone())),
    };
    metadata.change(key(present), change);
    metadata.change(key(absent), Change::Remove);
    // Empty `.zattrs` may be stored; they are equal to missing ones.
    let attributes = node.attributes.clone().map_or(Change::Clear, Change::Match);
    metadata.change(key(".zattrs"), attributes);
}

fn is_array_v2(document: &Json) -> bool {
    document.get("shape").is_some()
}

/// The entry of a node in the consolidated metadata of v3.
fn consolidated_v3(node: &StoredNode) -> Json {
    if node.document.get("node_type").and_then(|kind| kind.to_text()).as_deref() != Some("group") {
        return node.document.clone();
    }
    with_empty_consolidated(&node.document)
}
