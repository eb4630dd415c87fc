//! The children of groups in a store without listings: those that documents of groups name.
//!
//! Consolidated metadata of a group names everything below it. In OME-Zarr, `multiscales` names the levels of an image,
//! beside which there may be `labels`; `labels` names label images, `plate` its wells and `well` its images. A group with
//! `bioformats2raw.layout` has the group `OME`, whose `series` names the images; without it they are called 0, 1 and so
//! on. All may be out of date: a name that has no documents is no node, and a node that is not named is not found.

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

/// The documents of a group that can have attributes of OME-Zarr.
pub(super) const ATTRIBUTES: [&str; 2] = ["zarr.json", ".zattrs"];

/// The group of an image's labels.
const LABELS: &str = "labels";

/// The attribute of the groups that bioformats2raw writes, and the group in them that names the images.
const LAYOUT: &str = "bioformats2raw.layout";
pub(super) const SERIES: &str = "OME";

/// The nodes that the documents of a group name.
#[derive(Default)]
pub(super) struct Found {
    /// The relative paths of nodes; `None` if the documents name none.
    pub(super) paths: Option<BTreeSet<String>>,
    /// True if the group has images that [`SERIES`] names, or else are numbered.
    pub(super) has_series: bool,
}

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

/// Finds the nodes that the documents of a group name.
pub(super) fn named_nodes(texts: Vec<(Key, Bytes)>) -> Found {
    let mut all = Found::default();
    for (key, text) in texts {
        if key.name() == ".zmetadata" {
            all.add(v2::consolidated(text).ok().map(|copies| nodes_of(copies.documents())));
            continue;
        }
        let (copies, members) = members_of(&key, text);
        all.add(copies);
        for ome in members {
            all.has_series |= ome.get(LAYOUT).is_some() && ome.get("plate").is_none();
            all.add(in_ome_zarr(&ome));
        }
    }
    all
}

/// The images that the documents of the group [`SERIES`] name; `None` if they name none.
pub(super) fn named_series(texts: Vec<(Key, Bytes)>) -> Option<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for ome in texts.into_iter().flat_map(|(key, text)| members_of(&key, text).1) {
        found.extend(ome.get("series").iter().flat_map(|series| series.items()).filter_map(|path| relative(&path)));
    }
    (!found.is_empty()).then_some(found)
}

impl Found {
    /// Adds paths, if there are any.
    pub(super) fn add(&mut self, paths: Option<BTreeSet<String>>) {
        if let Some(paths) = paths {
            self.paths.get_or_insert_default().extend(paths);
        }
    }
}

/// The nodes that consolidated metadata in a document of a group name, and the objects that can have members of OME-Zarr:
/// its attributes, and `ome` in them.
fn members_of(key: &Key, text: Bytes) -> (Option<BTreeSet<String>>, Vec<Json>) {
    if key.name() != "zarr.json" {
        return (None, parse_object(text).into_iter().collect());
    }
    let Ok(v3::Node::Group(group)) = v3::node(text) else { return (None, Vec::new()) };
    let copies = group.consolidated.as_ref().map(|copies| nodes_of(copies.documents()));
    (copies, group.attributes.get("ome").into_iter().chain([group.attributes]).collect())
}

/// The nodes whose documents have these keys.
fn nodes_of(documents: impl Iterator<Item = (String, Json)>) -> BTreeSet<String> {
    documents.filter_map(|(key, _)| Some(key.rsplit_once('/')?.0.to_owned())).collect()
}

/// The members that attributes of OME-Zarr name: levels, wells, images and labels; `None` if there are none.
fn in_ome_zarr(attributes: &Json) -> Option<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut add = |path: Option<Json>| found.extend(path.and_then(|path| relative(&path)));
    for image in attributes.get("multiscales").iter().flat_map(|images| images.items()) {
        image.get("datasets").iter().flat_map(|datasets| datasets.items()).for_each(|level| add(level.get("path")));
    }
    for (group, list) in [("plate", "wells"), ("well", "images")] {
        let list = attributes.get(group).and_then(|group| group.get(list));
        list.iter().flat_map(|list| list.items()).for_each(|entry| add(entry.get("path")));
    }
    attributes.get("labels").iter().flat_map(|labels| labels.items()).for_each(|label| add(Some(label)));
    // Nothing names the labels of an image but their own group.
    if !found.is_empty() && attributes.get("multiscales").is_some() {
        found.insert(LABELS.to_owned());
    }
    if attributes.get(LAYOUT).is_some() {
        found.insert(SERIES.to_owned());
    }
    (!found.is_empty()).then_some(found)
}

/// A path below a group; `None` for a value that is none.
fn relative(path: &Json) -> Option<String> {
    let path = NodePath::parse(&path.to_text()?).ok().filter(|path| !path.is_root())?;
    Some(path.relative().to_owned())
}
