//! Trees from consolidated metadata.
//!
//! If a store declares its consolidated metadata trusted, a group that has some gets the nodes below it from there:
//! nothing below it is listed or read. The group itself is as its own documents say, and so is every group that
//! has none. Metadata that cannot be read are ignored; of those that can, an entry with an invalid document is a broken
//! node.

use std::collections::BTreeMap;

use bytes::Bytes;
use zarrd_meta::{
    Dialect, NodePath,
    documents::{draft, v2, v3, write::CONSOLIDATED},
    json::Json,
};
use zarrd_store::{Key, Prefix, Version};

use super::{documents::Read, mode::MAX_LEVELS, named::groups_above};
use crate::{
    metadata::keys::NAMES,
    node::keys::{join_key, node_prefix},
};

/// The consolidated metadata that a walk takes nodes from, by the prefix of their group.
#[derive(Default)]
pub(crate) struct TrustedCopies(BTreeMap<Prefix, Copies>);

/// The documents in the consolidated metadata of a group.
pub(super) struct Copies {
    /// The document that has the metadata.
    pub(super) key: Key,
    pub(super) version: Version,
    /// The documents of the nodes below the group, by their keys below its prefix.
    pub(super) documents: BTreeMap<String, Json>,
}

impl TrustedCopies {
    /// Takes the nodes below a group from its consolidated metadata from now on.
    pub(super) fn insert(&mut self, group: Prefix, copies: Copies) {
        self.0.insert(group, copies);
    }

    /// Takes no nodes from the consolidated metadata of a group any more.
    pub(super) fn remove(&mut self, group: &Prefix) {
        self.0.remove(group);
    }

    /// True if no nodes are taken from consolidated metadata.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if what is below a prefix is as consolidated metadata say.
    pub(super) fn cover(&self, prefix: &Prefix) -> bool {
        self.covering(prefix).is_some()
    }

    /// The names directly below a prefix; `None` if no consolidated metadata cover it.
    pub(super) fn names(&self, prefix: &Prefix) -> Option<Vec<String>> {
        let (copies, below) = self.covering(prefix)?;
        let found = copies.documents.range(below.to_owned()..).map_while(|(key, _)| key.strip_prefix(below));
        let mut names: Vec<String> = found.filter_map(|rest| Some(rest.split_once('/')?.0.to_owned())).collect();
        // Names that continue one another are not next to each other, as in `a-b/`, `a/` and `a-b/c/`.
        names.sort_unstable();
        names.dedup();
        Some(names)
    }

    /// The keys of the documents of a node, in the order of [`NAMES`]; `None` if no consolidated metadata cover it.
    pub(super) fn keys_of(&self, path: &NodePath) -> Option<[Option<Key>; 4]> {
        if self.is_empty() {
            return None;
        }
        let own = node_prefix(path).ok()?;
        let (copies, below) = self.covering(&own).filter(|(_, below)| !below.is_empty())?;
        let has = |name: &str| copies.documents.contains_key(&format!("{below}{name}"));
        // Missing attributes belong to the documents of a node of v2, too.
        let is_v2 = has(".zarray") || has(".zgroup");
        Some(NAMES.map(|name| join_key(&own, name).filter(|_| has(name) || is_v2 && name == ".zattrs")))
    }

    /// A document below a group, with the key and version of the consolidated metadata that have it; `None` if no
    /// consolidated metadata cover it.
    pub(super) fn document(&self, key: &Key) -> Option<Option<Read>> {
        let above = key.as_str().rsplit_once('/').map_or("", |(above, _)| above);
        let prefix = if above.is_empty() { Prefix::root() } else { Prefix::parse(&format!("{above}/")).ok()? };
        let (copies, below) = self.covering(&prefix).filter(|(_, below)| !below.is_empty())?;
        let document = copies.documents.get(&format!("{below}{}", key.name()));
        Some(document.map(|document| (copies.key.clone(), copies.version, Ok(document.to_bytes()))))
    }

    /// The consolidated metadata that cover a prefix, and the prefix below their group.
    fn covering<'p>(&self, prefix: &'p Prefix) -> Option<(&Copies, &'p str)> {
        if self.is_empty() {
            return None;
        }
        let (group, copies) = groups_above(prefix).find_map(|group| self.0.get_key_value(&group))?;
        Some((copies, prefix.as_str().strip_prefix(group.as_str())?))
    }
}

/// The object of documents in consolidated metadata; `None` if they cannot be read or there are none.
pub(super) fn entries(dialect: Dialect, text: Bytes) -> Option<Json> {
    let document = Json::parse_document(text.clone()).ok()?;
    match dialect {
        Dialect::V2 => v2::consolidated(text).ok().and_then(|_| document.get("metadata")),
        Dialect::V3 => match v3::node(text) {
            Ok(v3::Node::Group(group)) => group.consolidated.and_then(|_| inline(&document)),
            _ => None,
        },
        Dialect::Draft => None,
    }
}

/// The object of documents in the `zarr.json` of a group.
fn inline(document: &Json) -> Option<Json> {
    let consolidated = document.get(CONSOLIDATED)?;
    let kind = consolidated.get("kind")?.to_text()?;
    consolidated.get("metadata").filter(|metadata| kind == "inline" && metadata.is_object())
}

/// The number of documents, and the size of the largest; of v3 with those in the documents of groups.
pub(super) fn extent(entries: &Json, level: u32) -> (usize, u64) {
    let (mut count, mut largest) = (0_usize, 0_u64);
    for member in entries.members() {
        count = count.saturating_add(1);
        largest = largest.max(member.value.len() as u64);
        if let Some(nested) = inline(&member.value).filter(|_| level < MAX_LEVELS) {
            count = count.saturating_add(extent(&nested, level.saturating_add(1)).0);
        }
    }
    (count, largest)
}

/// The documents of the nodes in consolidated metadata, by their keys below the group.
pub(super) fn documents(dialect: Dialect, entries: &Json) -> BTreeMap<String, Json> {
    let mut documents = BTreeMap::new();
    match dialect {
        Dialect::V2 => {
            for member in entries.members() {
                let Some(key) = member.name().and_then(|name| NodePath::parse(&name).ok()) else { continue };
                let is_below = key.ancestors().count() > 1;
                if is_below && key.name().is_some_and(|name| NAMES.contains(&name) && name != "zarr.json") {
                    documents.insert(key.relative().to_owned(), member.value);
                }
            }
        }
        Dialect::V3 => add_documents("", entries, 0, &mut documents),
        Dialect::Draft => {}
    }
    documents
}

/// Adds the documents of v3, and those in the documents of groups, which have the paths below these.
fn add_documents(above: &str, entries: &Json, level: u32, documents: &mut BTreeMap<String, Json>) {
    for member in entries.members() {
        let Some(path) = member.name().and_then(|name| NodePath::parse(&name).ok()) else { continue };
        if path.is_root() || draft::has_uri(&member.value) {
            continue;
        }
        let below = format!("{above}{}", path.key_prefix());
        let nested = inline(&member.value).filter(|_| level < MAX_LEVELS);
        documents.insert(format!("{below}zarr.json"), member.value);
        if let Some(nested) = nested {
            add_documents(&below, &nested, level.saturating_add(1), documents);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn keys(dialect: Dialect, document: &Value) -> Option<Vec<String>> {
        let entries = entries(dialect, document.to_string().into_bytes().into())?;
        Some(documents(dialect, &entries).into_keys().collect())
    }

    fn group(metadata: Option<Value>) -> Value {
        let mut group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
        if let Some(metadata) = metadata {
            group[CONSOLIDATED] = json!({"kind": "inline", "must_understand": false, "metadata": metadata});
        }
        group
    }

    #[test]
    fn flat_and_nested_metadata_of_v3_have_the_same_documents() {
        let flat = json!({"a": group(Some(json!({}))), "a/b": group(Some(json!({}))), "a/b/c": group(None)});
        let nested = json!({"a": group(Some(json!({"b": group(Some(json!({"c": group(None)})))})))});
        let expected = ["a/b/c/zarr.json", "a/b/zarr.json", "a/zarr.json"];
        for metadata in [flat, nested] {
            assert_eq!(keys(Dialect::V3, &group(Some(metadata))).unwrap(), expected);
        }
        // The entry point of a draft hierarchy is no node of v3.
        let uri = json!({"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0"});
        assert_eq!(keys(Dialect::V3, &group(Some(json!({"x": uri, "": group(None)})))).unwrap(), [""; 0]);
    }

    #[test]
    fn metadata_of_v2_have_the_documents_of_nodes() {
        let metadata = json!({".zgroup": {}, ".zattrs": {}, "a/.zarray": {}, "a/.zattrs": {}, "a/other": {},
            "b/zarr.json": {}, "c/d/.zgroup": {}});
        let document = json!({"zarr_consolidated_format": 1, "metadata": metadata});
        assert_eq!(keys(Dialect::V2, &document).unwrap(), ["a/.zarray", "a/.zattrs", "c/d/.zgroup"]);
    }

    #[test]
    fn metadata_that_cannot_be_read_are_none() {
        for document in [
            group(None),
            group(Some(json!([]))),
            group(Some(json!({"a": 7}))),
            group(Some(json!({"../a": group(None)}))),
            json!({"zarr_format": 3, "node_type": "group", CONSOLIDATED: {"kind": "other", "must_understand": false}}),
            json!({"zarr_format": 3, "node_type": "array", CONSOLIDATED: {"kind": "inline", "metadata": {}}}),
            json!(7),
        ] {
            assert_eq!(keys(Dialect::V3, &document), None, "{document}");
        }
        for document in [json!({"zarr_consolidated_format": 2, "metadata": {}}), json!({"metadata": {}})] {
            assert_eq!(keys(Dialect::V2, &document), None, "{document}");
        }
    }
}
