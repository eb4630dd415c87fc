//! The children of groups in a store without listings: those that documents of groups name.
//!
//! Consolidated metadata of a group names everything below it. In OME-Zarr, `multiscales` names the levels of an image,
//! beside which there may be `labels`; `labels` names label images, `plate` its wells and `well` its images. All may be
//! out of date: a name that has no documents is no node, and a node that is not named is not found.

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

/// The group of an image's labels.
const LABELS: &str = "labels";

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
            _ => parse_object(text).ok().and_then(|attributes| in_ome_zarr(&attributes)),
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
    let images = group.attributes.get("ome").and_then(|ome| in_ome_zarr(&ome));
    let images = images.or_else(|| in_ome_zarr(&group.attributes));
    match (consolidated, images) {
        (None, None) => None,
        (consolidated, images) => Some(consolidated.into_iter().chain(images).flatten().collect()),
    }
}

/// The nodes whose documents have these keys.
fn nodes_of(documents: impl Iterator<Item = (String, Json)>) -> BTreeSet<String> {
    documents.filter_map(|(key, _)| Some(key.rsplit_once('/')?.0.to_owned())).collect()
}

/// The members that attributes of OME-Zarr name: levels, wells, images and labels; `None` if there are none.
fn in_ome_zarr(attributes: &Json) -> Option<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut add = |path: Option<String>| {
        let path = path.and_then(|path| NodePath::parse(&path).ok()).filter(|path| !path.is_root());
        found.extend(path.map(|path| path.relative().to_owned()));
    };
    let path_of = |entry: Json| entry.get("path").and_then(|path| path.to_text());
    for image in attributes.get("multiscales").iter().flat_map(|images| images.items()) {
        image.get("datasets").iter().flat_map(|datasets| datasets.items()).for_each(|level| add(path_of(level)));
    }
    for (group, list) in [("plate", "wells"), ("well", "images")] {
        let list = attributes.get(group).and_then(|group| group.get(list));
        list.iter().flat_map(|list| list.items()).for_each(|entry| add(path_of(entry)));
    }
    attributes.get("labels").iter().flat_map(|labels| labels.items()).for_each(|label| add(label.to_text()));
    // Nothing names the labels of an image but their own group.
    if !found.is_empty() && attributes.get("multiscales").is_some() {
        found.insert(LABELS.to_owned());
    }
    (!found.is_empty()).then_some(found)
}
