//! The chunks of a copy: listed, and copied as of one commit.

use std::{collections::HashSet, sync::Arc};

use zarrd_meta::{ArrayModel, convert::keeps_chunks};
use zarrd_store::{Change, Key, PageRequest, Precondition, Snapshot};

use super::{
    copy_commits::{CopyCommits, CopySteps},
    rewritten::RewrittenArray,
    shrink::StoredChunks,
};
use crate::{
    context::Context,
    error::ArrayError,
    memory::claim::Permit,
    metadata::{
        error::NodeError,
        keys,
        model::{NodeModel, read_model},
        tree::NodeTree,
    },
    node::array::Array,
};

/// The memory of a planned chunk in addition to its two keys, in bytes.
const PER_CHUNK: u64 = 320;

/// The memory that is reserved at a time, in bytes.
const RESERVED_AT_ONCE: u64 = 1 << 20;

/// The chunks of a hierarchy as of one commit.
pub(super) struct CopiedChunks {
    listed: ListedChunks,
    snapshot: Arc<dyn Snapshot>,
}

/// The stored chunks of a hierarchy.
#[derive(Default)]
pub(super) struct ListedChunks {
    /// The key of each that is copied unchanged, and the key of its copy.
    copied: Vec<(Key, Key)>,
    /// The arrays whose elements are written anew.
    rewritten: Vec<RewrittenArray>,
    memory: Option<Permit>,
}

impl ListedChunks {
    /// The keys of all of them.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        let rewritten = self.rewritten.iter().flat_map(|array| array.keys.iter());
        self.copied.iter().map(|(key, _)| key).chain(rewritten)
    }
}

/// A listing of the chunks of several arrays.
pub(super) struct Listing<'a> {
    context: &'a Context,
    /// The memory that the request holds already.
    reserved: &'a [Permit],
    chunks: ListedChunks,
    needed: u64,
}

impl<'a> Listing<'a> {
    pub(super) fn new(context: &'a Context, reserved: &'a [Permit]) -> Self {
        Self { context, reserved, chunks: ListedChunks::default(), needed: 0 }
    }

    /// All chunks that were found.
    pub(super) fn into_chunks(self) -> ListedChunks {
        self.chunks
    }

    /// Adds the chunks of an array; returns their number.
    pub(super) async fn add(&mut self, source: &NodeTree, copy: &NodeTree) -> Result<u64, NodeError> {
        let (NodeModel::Array(from), NodeModel::Array(to)) = (read_model(source)?, read_model(copy)?) else {
            return Ok(0);
        };
        let chunks = stored_chunks(source, &from)?;
        if keeps_chunks(&from, &to) {
            return self.add_copied(&chunks, *from, (copy, *to)).await;
        }
        let keys = self.find(&chunks, 0).await?;
        let found = keys.len() as u64;
        let (from, to) = (array_at(source, *from)?, array_at(copy, *to)?);
        self.chunks.rewritten.push(RewrittenArray { from, to, chunks, keys: keys.into() });
        Ok(found)
    }

    /// Adds the chunks of an array whose copy has the same chunks.
    async fn add_copied(
        &mut self,
        chunks: &StoredChunks,
        from: ArrayModel,
        (copy, to): (&NodeTree, ArrayModel),
    ) -> Result<u64, NodeError> {
        let copies = stored_chunks(copy, &to)?;
        let (mut preferred, mut fallbacks) = (Vec::new(), Vec::new());
        for key in self.find(chunks, copies.prefix.as_str().len()).await? {
            let Some(position) = chunks.position(&key) else { continue };
            let written = copies.prefix.join(&to.chunk_keys.written_key(&position));
            let written = written.map_err(|_| keys::too_long(copy.dialect, &copy.path))?;
            let is_fallback = chunks.prefix.strip(&key) == from.chunk_keys.fallback_key(&position);
            let pair = (key, written);
            if is_fallback { fallbacks.push(pair) } else { preferred.push(pair) }
        }
        // If a chunk is stored under two keys, a reader takes the first.
        if !fallbacks.is_empty() {
            let known: HashSet<&Key> = preferred.iter().map(|(_, written)| written).collect();
            fallbacks.retain(|(_, written)| !known.contains(written));
        }
        let found = preferred.len().saturating_add(fallbacks.len()) as u64;
        self.chunks.copied.append(&mut preferred);
        self.chunks.copied.append(&mut fallbacks);
        Ok(found)
    }

    /// The keys of an array's stored chunks, in order, each with memory for a second one with a prefix of some length.
    async fn find(&mut self, chunks: &StoredChunks, copy_prefix: usize) -> Result<Vec<Key>, NodeError> {
        let mut keys = Vec::new();
        let mut page = PageRequest::first(zarrd_store::MAX_PAGE_ENTRIES);
        loop {
            let found = self.context.store.list_prefix(&chunks.prefix, page).await?;
            for key in found.keys.into_iter().map(|entry| entry.key) {
                if chunks.position(&key).is_some() {
                    let length = key.as_str().len().saturating_mul(2).saturating_add(copy_prefix) as u64;
                    self.needed = self.needed.saturating_add(length).saturating_add(PER_CHUNK);
                    keys.push(key);
                }
            }
            self.reserve().await?;
            match found.cursor {
                Some(cursor) => page = PageRequest::after(zarrd_store::MAX_PAGE_ENTRIES, cursor),
                None => return Ok(keys),
            }
        }
    }

    async fn reserve(&mut self) -> Result<(), NodeError> {
        let wanted = self.needed.next_multiple_of(RESERVED_AT_ONCE);
        match &mut self.chunks.memory {
            _ if self.needed == 0 => {}
            Some(memory) => memory.grow_to(wanted).map_err(ArrayError::from)?,
            None => self.chunks.memory = Some(self.context.reserve_memory(self.reserved, wanted).await?),
        }
        Ok(())
    }
}

impl CopiedChunks {
    /// The listed chunks, which are in a snapshot.
    pub(super) fn new(listed: ListedChunks, snapshot: Box<dyn Snapshot>) -> Self {
        Self { listed, snapshot: snapshot.into() }
    }

    /// Copies the chunks; returns the number of those that were stored.
    pub(super) async fn copy(
        &self,
        context: &Arc<Context>,
        reserved: &[Permit],
        steps: CopySteps,
    ) -> Result<u64, NodeError> {
        let mut commits = CopyCommits::new(context, steps);
        for (key, copy) in &self.listed.copied {
            let Some(value) = self.snapshot.get(key, None).await? else { continue };
            let staged = context.writes()?.stage(copy, value.into_payload()).await?;
            commits.add([Change::Set { staged, precondition: Precondition::none() }]).await?;
        }
        for array in &self.listed.rewritten {
            array.write(context, &self.snapshot, reserved, &mut commits).await?;
        }
        commits.finish().await
    }
}

/// The keys of the chunks of a tree's node.
fn stored_chunks(node: &NodeTree, model: &ArrayModel) -> Result<StoredChunks, NodeError> {
    StoredChunks::new(&node.path, model, node.root.as_ref().map(|root| &root.prefix))
}

/// The array that a node of a tree is, in its stored coordinates.
fn array_at(node: &NodeTree, model: ArrayModel) -> Result<Array, NodeError> {
    let model = ArrayModel { view_offset: vec![0; model.shape.len()], ..model };
    Ok(Array::new(model, node.path.clone(), &node.key_prefix()?, node.own.version().as_u128())?)
}
