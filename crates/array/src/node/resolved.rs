//! The node at a path, as its metadata describes it.

use std::sync::Arc;

use zarrd_meta::{
    Dialect, NodePath,
    documents::{GroupModel, draft},
};
use zarrd_store::{Prefix, Version};

use super::{
    array::Array,
    broken::Broken,
    read_set::{NodeVersions, ReadSet},
};

/// The node at a path.
#[derive(Clone, Debug)]
pub(crate) enum ResolvedNode {
    Array(Arc<ResolvedArray>),
    Group(Box<ResolvedGroup>),
}

/// An array, with the versions of the documents that it was resolved from.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedArray {
    pub(crate) array: Array,
    pub(crate) read_set: ReadSet,
    pub(crate) versions: NodeVersions,
    /// The draft hierarchy that contains it.
    pub(crate) hierarchy: Option<Arc<DraftHierarchy>>,
    /// The error of its attributes, if they cannot be read. Elements can be read and written without them.
    pub(crate) unreadable_attributes: Option<Broken>,
}

/// A group, with the versions of the documents that it was resolved from.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedGroup {
    /// Its model; `None` for an implicit group of the draft, which exists because there are nodes below it.
    pub(crate) model: Option<GroupModel>,
    pub(crate) dialect: Dialect,
    pub(crate) read_set: ReadSet,
    pub(crate) versions: NodeVersions,
    /// The draft hierarchy that contains it.
    pub(crate) hierarchy: Option<Arc<DraftHierarchy>>,
}

/// A hierarchy of the 2020 draft of v3: the directory of an entry point document, below which all its keys lie.
#[derive(Clone, Debug)]
pub(crate) struct DraftHierarchy {
    /// The path of its root.
    pub(crate) path: NodePath,
    /// The prefix of its keys.
    pub(crate) prefix: Prefix,
    /// Its entry point metadata document.
    pub(crate) entry_point: draft::EntryPoint,
}

impl ResolvedArray {
    /// The version of the node: another one whenever a document of its own changes. Documents that were read only to
    /// find it, such as those of other dialects, do not matter.
    pub(crate) fn version(&self) -> Version {
        self.versions.version()
    }
}
