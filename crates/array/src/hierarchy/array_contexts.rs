//! What the conversion of arrays depends on in addition to their documents: their chunks, and the arrays next to them.

use std::collections::HashMap;

use zarrd_meta::{
    ArrayModel, Dialect, NodePath,
    convert::{ArrayContext, StoredChunks, depends_on_chunks},
    json::{Json, Kind},
    zom::Members,
};
use zarrd_operations::Depth;
use zarrd_store::{MAX_PAGE_ENTRIES, PageRequest};

use super::{
    shrink,
    walk::{mode::WalkOptions, walker::walk},
};
use crate::{
    context::Context,
    error::ArrayError,
    metadata::{
        error::NodeError,
        model::{NodeModel, read_model},
        tree::{NodeKind, NodeTree},
    },
};

/// The number of chunks of an array that are counted. If it has more, some of them count as missing.
const MAX_COUNTED: u64 = 1 << 20;

/// The number of keys that are listed in addition to twice the number of chunks, before some chunks count as missing.
const MAX_OTHER_KEYS: u64 = 1 << 12;

/// The contexts of the arrays of a tree.
#[derive(Debug, Default)]
pub(crate) struct ArrayContexts {
    /// The contexts that are not the default, by the path below the topmost node.
    arrays: HashMap<String, Counted>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    context: ArrayContext,
    /// The number of chunks in the grid.
    num_chunks: u64,
}

impl ArrayContexts {
    /// Finds the contexts of a tree that is converted. The chunks are counted only if that matters.
    pub(crate) async fn find(context: &Context, top: &NodeTree, to: Dialect) -> Result<Self, NodeError> {
        let mut contexts = Self::default();
        if top.dialect != Dialect::V3 || to == Dialect::V3 {
            return Ok(contexts);
        }
        if top.kind == NodeKind::Array {
            let is_named = is_scalar(&top.stored.document) && is_in_named_group(context, top).await?;
            contexts.add(context, top, to, &top.path, is_named).await?;
            return Ok(contexts);
        }
        for group in top.readable() {
            let is_named = has_named_arrays(group);
            for member in group.members.iter().flat_map(Members::values) {
                if member.kind == NodeKind::Array && member.broken.is_none() {
                    contexts.add(context, member, to, &top.path, is_named).await?;
                }
            }
        }
        Ok(contexts)
    }

    /// The context of the array at a path below the topmost node.
    pub(crate) fn get(&self, below: &str) -> ArrayContext {
        self.arrays.get(below).map(|counted| counted.context).unwrap_or_default()
    }

    /// The context of the array at a path in the tree of a topmost node.
    pub(crate) fn at(&self, path: &NodePath, top: &NodePath) -> ArrayContext {
        self.get(path.relative_to(top).unwrap_or_default())
    }

    /// False if an array has fewer chunks than it had when its context was found.
    pub(crate) fn agree(&self, below: &str, stored: u64) -> bool {
        let counted = self.arrays.get(below).filter(|counted| counted.context.stored == StoredChunks::All);
        counted.is_none_or(|counted| stored >= counted.num_chunks)
    }

    async fn add(
        &mut self,
        context: &Context,
        node: &NodeTree,
        to: Dialect,
        top: &NodePath,
        is_in_named_group: bool,
    ) -> Result<(), NodeError> {
        // The conversion reports what cannot be read.
        let Ok(NodeModel::Array(model)) = read_model(node) else { return Ok(()) };
        let mut counted =
            Counted { context: ArrayContext { is_in_named_group, ..ArrayContext::default() }, num_chunks: 0 };
        if depends_on_chunks(&model, to, is_in_named_group) {
            counted.num_chunks = num_chunks(&model);
            counted.context.stored = stored_chunks(context, node, &model, counted.num_chunks).await?;
        }
        if counted.context != ArrayContext::default() {
            self.arrays.insert(node.path.relative_to(top).unwrap_or_default().to_owned(), counted);
        }
        Ok(())
    }
}

/// True if a document of v3 is that of an array with a named dimension.
pub(crate) fn has_dimension_names(document: &Json) -> bool {
    let names = document.get("dimension_names").filter(|names| names.kind() == Kind::Array);
    names.is_some_and(|names| names.items().any(|name| name.kind() == Kind::String))
}

/// True if an array in a group of v3 has a named dimension.
pub(crate) fn has_named_arrays(group: &NodeTree) -> bool {
    let mut members = group.members.iter().flat_map(Members::values);
    members.any(|member| {
        member.dialect == Dialect::V3 && member.kind == NodeKind::Array && has_dimension_names(&member.stored.document)
    })
}

fn is_scalar(document: &Json) -> bool {
    document.get("shape").is_some_and(|shape| shape.items().next().is_none())
}

/// True if an array next to this one has a named dimension.
async fn is_in_named_group(context: &Context, node: &NodeTree) -> Result<bool, NodeError> {
    let Some(parent) = node.path.parent().filter(|parent| context.can_read(parent)) else { return Ok(false) };
    match walk(context, &parent, Some(node.dialect), WalkOptions::new(Depth::Levels(1))).await {
        Ok(walk) => Ok(has_named_arrays(&walk.top)),
        // Without a readable group above it, an array is alone.
        Err(NodeError::Rejected(_) | NodeError::Array(ArrayError::NoSuchNode { .. } | ArrayError::Document { .. })) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn num_chunks(model: &ArrayModel) -> u64 {
    let dimensions = model.grid.dimensions().iter().zip(&model.shape);
    dimensions.map(|(grid, extent)| grid.num_chunks(*extent)).fold(1, u64::saturating_mul)
}

/// Counts the chunks of an array. The chunks in shards are not counted.
async fn stored_chunks(
    context: &Context,
    node: &NodeTree,
    model: &ArrayModel,
    num_chunks: u64,
) -> Result<StoredChunks, NodeError> {
    if num_chunks > MAX_COUNTED || model.codecs.iter().any(|codec| codec.name == "sharding_indexed") {
        return Ok(StoredChunks::Some);
    }
    let chunks = shrink::StoredChunks::new(&node.path, model, node.root.as_ref().map(|root| &root.prefix))?;
    let (mut stored, mut listed) = (0_u64, 0_u64);
    let mut page = PageRequest::first(MAX_PAGE_ENTRIES);
    while stored < num_chunks {
        let found = context.store.list_prefix(&chunks.prefix, page).await?;
        listed = listed.saturating_add(found.keys.len() as u64);
        let of_chunks = found.keys.iter().filter(|entry| chunks.position(&entry.key).is_some()).count();
        stored = stored.saturating_add(of_chunks as u64);
        match found.cursor {
            Some(cursor) if listed <= num_chunks.saturating_mul(2).saturating_add(MAX_OTHER_KEYS) => {
                page = PageRequest::after(MAX_PAGE_ENTRIES, cursor);
            }
            _ => break,
        }
    }
    Ok(if stored >= num_chunks { StoredChunks::All } else { StoredChunks::Some })
}
