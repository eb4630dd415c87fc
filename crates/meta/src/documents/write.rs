//! Node documents as the values of keys.

use std::collections::HashSet;

use serde_json::{Value, json};

pub use super::v3::CONSOLIDATED;
use super::{json::ATTRIBUTES, parts::object};
use crate::{
    Dialect,
    json::{Change, Json, ObjectEdit},
};

/// A node's documents as they are stored, in their own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredNode {
    /// The node's document: a `.zarray`, a `.zgroup`, a `zarr.json`, or a document of the draft.
    pub document: Json,
    /// The `.zattrs` of v2, if there is one; `None` in the other dialects, whose documents have the attributes.
    pub attributes: Option<Json>,
}

impl StoredNode {
    /// The documents of a node, of which `attributes` are the `.zattrs` in v2; those without members are not stored.
    pub fn new(dialect: Dialect, document: &Json, attributes: &Json) -> Self {
        let is_stored = dialect == Dialect::V2 && attributes.members().next().is_some();
        Self { document: document.clone(), attributes: is_stored.then(|| attributes.clone()) }
    }

    /// The one document that a node of v3 or the draft has.
    pub fn single_document(document: Json) -> Self {
        Self { document, attributes: None }
    }

    /// The stored documents of a node document. In v2 the attributes go into the `.zattrs`, which is left out if they
    /// are empty.
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

    /// The documents in the layout in which new ones are stored.
    #[must_use]
    pub fn formatted(&self) -> Self {
        Self { document: self.document.formatted(), attributes: self.attributes.as_ref().map(Json::formatted) }
    }

    /// True if two nodes are stored as the same values, however they are written. Attributes without members are as good as none.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        let [one, two] = [self, other].map(|node| node.attributes.clone().unwrap_or_default());
        self.document.is_equivalent(&other.document) && one.is_equivalent(&two)
    }
}

/// The node document of an array or a group of v2: its own with the `attributes` of the `.zattrs`.
pub fn join_v2(document: &Json, attributes: &Json) -> Json {
    // Were there such a member in the `.zarray`, it would not be the user's attributes.
    document.with(ATTRIBUTES, Change::SetText(attributes.clone()))
}

/// The entry point of a new hierarchy of the draft, as zarr-python 2 writes it.
pub fn draft_entry_point() -> Json {
    let document = object([
        ("extensions", json!([])),
        ("metadata_encoding", json!("https://purl.org/zarr/spec/protocol/core/3.0")),
        ("metadata_key_suffix", json!(".json")),
        ("zarr_format", json!("https://purl.org/zarr/spec/protocol/core/3.0")),
    ]);
    Json::pretty(&Value::Object(document))
}

/// The document of a group of v3 without consolidated metadata.
pub fn strip_consolidated(document: &Json) -> Json {
    document.without(CONSOLIDATED)
}

/// The document of a group of v3 with consolidated metadata that has nothing yet.
pub fn with_empty_consolidated(document: &Json) -> Json {
    let empty = json!({"kind": "inline", "must_understand": false, "metadata": {}});
    document.with(CONSOLIDATED, Change::Set(empty))
}

/// A change of one node in consolidated metadata.
#[derive(Clone, Debug)]
pub struct ConsolidatedEntry<'a> {
    /// The node's path below the group that has the metadata: `a/b`, empty for the group itself.
    pub path: &'a str,
    /// Its new documents, without those of the nodes below it; `None` if it is erased with everything below it.
    pub node: Option<&'a StoredNode>,
}

/// A document with consolidated metadata after changes of nodes: in v2 a `.zmetadata`, in v3 the `zarr.json` of a group. Where nodes are gone, this comes before what is
/// there now. A document without such metadata stays as it is, and so does every byte that is not of these nodes.
///
/// In v3 the group itself has no copy, and groups are written with consolidated metadata of their own that is empty, as zarr-python does: their members stand beside them.
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
        false => (".zgroup", ".zarray", Change::edit(merge_members(&node.document))),
    };
    metadata.change(key(present), change);
    metadata.change(key(absent), Change::Remove);
    // A `.zattrs` without members may be stored, and is as good as none.
    let attributes = node.attributes.clone().map_or(Change::Clear, Change::Match);
    metadata.change(key(".zattrs"), attributes);
}

/// Makes an object say what a document says, beside what else it says: zarr-python 3 puts consolidated metadata into the copies of groups of v2, whose documents have none.
fn merge_members(document: &Json) -> ObjectEdit {
    let mut edit = ObjectEdit::default();
    for member in document.members() {
        let Some(name) = member.name() else { continue };
        edit.change(name, Change::Match(member.value));
    }
    edit
}

fn is_array_v2(document: &Json) -> bool {
    document.get("shape").is_some()
}

/// A node's document as consolidated metadata of v3 has it.
fn consolidated_v3(node: &StoredNode) -> Json {
    if node.document.get("node_type").and_then(|kind| kind.to_text()).as_deref() != Some("group") {
        return node.document.clone();
    }
    with_empty_consolidated(&node.document)
}
