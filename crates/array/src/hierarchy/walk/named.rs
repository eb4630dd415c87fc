//! The children of groups in a store without listings: those that documents of groups name.
//!
//! Consolidated metadata of a group names everything below it, and `multiscales` of OME-Zarr names the levels of an
//! image. Both may be out of date: a name that has no documents is no node, and a node that is not named is not found.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use zarrd_meta::{
    NodePath,
    documents::{parse_object, v2, v3},
    json::Json,
};
use zarrd_store::{Key, Prefix};

/// The documents of a group that name nodes below it.
pub(super) const NAMING: [&str; 3] = ["zarr.json", ".zmetadata", ".zattrs"];

/// The nodes that the documents of groups name, by the prefix of the group.
#[derive(Default)]
pub(crate) struct NamedNodes(BTreeMap<Prefix, Option<BTreeSet<String>>>);

impl NamedNodes {
    /// True if no documents were searched.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if the documents of a group were searched.
    pub(super) fn has_searched(&self, group: &Prefix) -> bool {
        self.0.contains_key(group)
    }

    /// Adds what the documents of a group name.
    pub(super) fn insert(&mut self, group: Prefix, found: Option<BTreeSet<String>>) {
        self.0.insert(group, found);
    }

    /// The names directly below a prefix; `None` if no group at or above it names nodes.
    pub(super) fn below(&self, prefix: &Prefix) -> Option<BTreeSet<String>> {
        let mut names = None;
        for group in groups_above(prefix) {
            let Some(paths) = self.0.get(&group).and_then(Option::as_ref) else { continue };
            let names = names.get_or_insert_with(BTreeSet::new);
            let Some(below) = prefix.as_str().strip_prefix(group.as_str()) else { continue };
            let found = paths.range(below.to_owned()..).map_while(|path| path.strip_prefix(below));
            names.extend(
                found.filter_map(|rest| rest.split('/').next()).filter(|name| !name.is_empty()).map(str::to_owned),
            );
        }
        names
    }
}

/// The prefixes of the groups at and above a prefix, the root first.
pub(super) fn groups_above(prefix: &Prefix) -> impl Iterator<Item = Prefix> + use<> {
    let text = prefix.as_str().to_owned();
    let ends: Vec<usize> = std::iter::once(0).chain(text.match_indices('/').map(|(at, _)| at + 1)).collect();
    ends.into_iter().filter_map(move |end| Prefix::parse(text.get(..end)?).ok())
}

/// The relative paths of the nodes that documents name; `None` if they name none.
pub(super) fn named_nodes(texts: Vec<(Key, Bytes)>) -> Option<BTreeSet<String>> {
    let mut all = None;
    for (key, text) in texts {
        let found = match key.name() {
            ".zmetadata" => v2::consolidated(text).ok().map(|copies| nodes_of(copies.documents())),
            "zarr.json" => in_zarr_json(text),
            _ => parse_object(text).ok().and_then(|attributes| multiscales(&attributes)),
        };
        if let Some(found) = found {
            all.get_or_insert_with(BTreeSet::new).extend(found);
        }
    }
    all
}

fn in_zarr_json(text: Bytes) -> Option<BTreeSet<String>> {
    let Ok(v3::Node::Group(group)) = v3::node(text) else { return None };
    let consolidated = group.consolidated.as_ref().map(|copies| nodes_of(copies.documents()));
    let levels = group.attributes.get("ome").and_then(|ome| multiscales(&ome));
    let levels = levels.or_else(|| multiscales(&group.attributes));
    match (consolidated, levels) {
        (None, None) => None,
        (consolidated, levels) => Some(consolidated.into_iter().chain(levels).flatten().collect()),
    }
}

/// The nodes whose documents have these keys.
fn nodes_of(documents: impl Iterator<Item = (String, Json)>) -> BTreeSet<String> {
    documents.filter_map(|(key, _)| Some(key.rsplit_once('/')?.0.to_owned())).collect()
}

/// The levels of the images in attributes of OME-Zarr; `None` if there are none.
fn multiscales(attributes: &Json) -> Option<BTreeSet<String>> {
    let images = attributes.get("multiscales")?;
    let datasets = images.items().filter_map(|image| image.get("datasets"));
    let levels = datasets.flat_map(|datasets| datasets.items());
    let paths = levels.filter_map(|level| NodePath::parse(&level.get("path")?.to_text()?).ok());
    let paths: BTreeSet<String> = paths.filter(|path| !path.is_root()).map(|path| path.relative().to_owned()).collect();
    (!paths.is_empty()).then_some(paths)
}
