//! The node at a path, as its metadata describes it.

use std::{borrow::Cow, sync::Arc};

use zarrd_meta::{
    ArrayModel, Dialect, NodePath,
    documents::{GroupModel, draft},
    relation::{DialectRelation, fill_values_agree},
};
use zarrd_store::{Prefix, Version};

use super::{
    array::Array,
    broken::Broken,
    counterpart::{Counterpart, DialectsDiffer},
    read_set::{NodeVersions, ReadSet},
};
use crate::{
    error::ArrayError,
    options::{EmptyChunks, Options},
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
    /// What the other one of v2 and v3 has at the path; `None` if it has nothing, or if reading them would take a request.
    pub(crate) counterpart: Option<Arc<Counterpart>>,
    /// The shape in its document, if the counterpart has a larger one, which the array was [given](Self::for_change).
    pub(crate) document_shape: Option<Vec<u64>>,
    /// The path of the [times](ArrayModel::bounded_times) whose bounds these are.
    pub(crate) times: Option<NodePath>,
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
    /// What the other one of v2 and v3 has at the path; `None` if it has nothing, or if reading them would take a request.
    pub(crate) counterpart: Option<Arc<Counterpart>>,
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

    /// The array as it is changed: with the larger one of the shapes that its documents of v2 and v3 have, so that
    /// nothing is written over what a program appended that knows one of them. Fails if the documents differ otherwise,
    /// or neither shape contains the other one.
    pub(crate) fn for_change(self: &Arc<Self>) -> Result<Arc<Self>, ArrayError> {
        let Some(counterpart) = &self.counterpart else { return Ok(self.clone()) };
        let shape = &self.array.model().shape;
        if !counterpart.allows_changes(Some(shape)) {
            let path = self.array.path();
            let none = || ArrayError::NoSuchNode { path: path.clone() };
            let differ = counterpart.rejection(path, &self.versions).ok_or_else(none)?;
            return Err(ArrayError::DialectsDiffer(differ));
        }
        let larger = counterpart.array().map(|other| other.shape.clone());
        let Some(larger) =
            larger.filter(|larger| counterpart.relation == DialectRelation::Shape && is_larger(larger, shape))
        else {
            return Ok(self.clone());
        };
        let (array, document_shape) = (self.array.reshaped(larger), Some(shape.clone()));
        Ok(Arc::new(Self { array, document_shape, ..Self::clone(self) }))
    }

    /// The error of a read that names no dialect, if the other one of v2 and v3 has another layout of the same chunks,
    /// so that one of the two is wrong.
    pub(crate) fn ambiguous_layout(&self) -> Option<DialectsDiffer> {
        let counterpart = self.counterpart.as_ref()?;
        let is_ambiguous = counterpart.relation == DialectRelation::Layout;
        counterpart.rejection(self.array.path(), &self.versions).filter(|_| is_ambiguous)
    }

    /// True if a missing chunk reads the same in both of v2 and v3.
    pub(crate) fn fill_value_is_agreed(&self) -> bool {
        self.models().all(|model| fill_values_agree(self.array.model(), model))
    }

    /// What becomes of chunks that are full of the fill value.
    pub(crate) fn empty_chunks(&self, options: &Options) -> EmptyChunks {
        let model = self.array.model();
        match model.skips_empty_chunks() {
            // A missing chunk would have other elements in the other dialect.
            _ if !self.fill_value_is_agreed() => EmptyChunks::Store,
            true => EmptyChunks::Omit,
            false if !model.fill_value_is_agreed() => EmptyChunks::Store,
            false => options.empty_chunks,
        }
    }

    /// The model of its own document.
    pub(crate) fn document_model(&self) -> Cow<'_, ArrayModel> {
        let model = self.array.model();
        match &self.document_shape {
            None => Cow::Borrowed(model),
            Some(shape) => Cow::Owned(ArrayModel { shape: shape.clone(), ..model.clone() }),
        }
    }

    /// The relation of the documents of v2 and v3.
    pub(crate) fn relation(&self) -> Option<DialectRelation> {
        self.counterpart.as_ref().map(|counterpart| counterpart.relation)
    }

    /// True if the documents of v2 and v3 have different shapes, which the next change makes equal.
    pub(crate) fn has_two_shapes(&self) -> bool {
        self.relation() == Some(DialectRelation::Shape)
    }

    /// The models over the same chunks: its own, and that of the counterpart.
    pub(crate) fn models(&self) -> impl Iterator<Item = &ArrayModel> {
        let counterpart = self.counterpart.as_ref().and_then(|counterpart| counterpart.array());
        std::iter::once(self.array.model()).chain(counterpart)
    }
}

/// True if a shape is not contained in another one.
fn is_larger(shape: &[u64], other: &[u64]) -> bool {
    shape.iter().zip(other).any(|(extent, other)| extent > other)
}
