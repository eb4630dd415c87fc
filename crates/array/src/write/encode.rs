//! Encoding and staging chunks.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use zarrd_codec::{CodecChain, CodecError, Elements, EncodedSizeBound, PartialAccess, ShardingCodec};
use zarrd_executor::{Cost, Work};
use zarrd_store::{Change, Key, Precondition, Staged, Version};

use super::{
    error::WriteError,
    gather::Patch,
    layout::{ChunkPart, ChunkedRegion, Coverage},
    memory::{BATCH, MinMemory, RESERVATION_STEP},
    read_modify_write::{RewriteContext, RewriteError, StoredContent, Undecodable, rewrite},
    repeated::{self, Filling, RepeatedChunks},
};
use crate::{
    cache::{CacheKey, CacheKind, Cached},
    context::Context,
    error::ArrayError,
    node::array::Array,
    options::EmptyChunks,
    work::{STEPS_PER_KEY, WorkBudget, min_decode_work},
};

/// The relation of a region's elements to the body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// The body has every element.
    All,
    /// One element stands for all.
    One,
}

/// The size charged for an element of variable length, in bytes.
const NOMINAL_VARIABLE_SIZE: u64 = 32;

/// The memory of a staged chunk in addition to its value, in bytes, and the memory of all values that are so small that
/// stores hold them in memory until the commit.
pub(crate) const STAGED_CHUNK_OVERHEAD: u64 = 512;
const MAX_INLINE_VALUES: u64 = 16 << 20;

/// The number of chunks of one batch that are staged concurrently.
const STAGE_CONCURRENCY: usize = 8;

/// The context of a write: an array and the region to write.
pub(crate) struct WriteContext {
    pub(crate) context: Arc<Context>,
    pub(crate) array: Array,
    pub(crate) layout: ChunkedRegion,
    /// The size of an element in bytes; `None` for variable length.
    pub(crate) size: Option<usize>,
    /// The minimum memory of the write.
    pub(crate) least: MinMemory,
    empty: EmptyChunks,
    /// The treatment of chunks that are full of the fill value, but were not: where erases have no conditions, these are
    /// stored.
    emptied: EmptyChunks,
    repeated: RepeatedChunks,
}

/// A chunk to encode.
pub(crate) struct EncodeJob {
    pub(crate) position: Vec<u64>,
    pub(crate) shape: Vec<u64>,
    pub(crate) under: BaseContent,
    pub(crate) patches: Vec<Patch>,
}

/// The content of a chunk before a write.
pub(crate) enum BaseContent {
    /// Irrelevant, since the write covers the chunk; elements outside the array have the fill value.
    Nothing,
    /// The stored chunk.
    Stored(Stored),
}

/// A stored chunk.
pub(crate) struct Stored {
    /// The version of each of its keys.
    versions: Vec<Option<Version>>,
    /// The key that has a value; the first if none has.
    key: Key,
    content: StoredContent,
    /// The treatment of content that cannot be decoded.
    undecodable: Undecodable,
}

/// A chunk that is encoded and staged.
#[derive(Debug)]
pub(crate) struct StagedChunk {
    keys: Vec<Key>,
    /// The staged value; `None` for a chunk full of the fill value, which is not stored.
    staged: Option<Staged>,
    /// The versions of the keys that it was derived from; `None` if it does not depend on them.
    read: Option<Vec<Option<Version>>>,
}

impl WriteContext {
    /// The context of a write to `array`. Fails if a chunk is too large to be encoded.
    pub(crate) fn new(
        context: Arc<Context>,
        array: Array,
        empty: EmptyChunks,
        layout: ChunkedRegion,
    ) -> Result<Self, ArrayError> {
        let model = array.model();
        let size = model.data_type.fixed_size();
        let (least, repeated) = (MinMemory::default(), RepeatedChunks::default());
        let path = array.path();
        let emptied = match context.is_keyed_at(path) && !context.guarantees_at(path).conditional_erase {
            true => EmptyChunks::Store,
            false => empty,
        };
        let mut target = Self { empty, emptied, size, context, array, layout, least, repeated };
        if let Some(chain) = target.array.largest_chain()? {
            target.check_size(working_len(&chain))?;
            target.check_readable(&chain)?;
            target.least = target.min_memory(&chain);
        }
        Ok(target)
    }

    /// Fails if encoding the chunks takes more work than the body accounts for, or if one element of the result could
    /// not be read.
    pub(crate) fn check_work(&self, carried: BodyKind) -> Result<(), ArrayError> {
        let Some(chain) = self.array.largest_chain()? else { return Ok(()) };
        let limit = self.context.options.max_work;
        WorkBudget::new(0, None, limit).check(min_decode_work(&chain))?;
        let elements = match carried {
            BodyKind::All => self.layout.elements(),
            BodyKind::One => 1,
        };
        let chunks = self.layout.chunks();
        let (encoded, decoded) = self.chunk_work(&chain);
        let work = chunks.saturating_mul(STEPS_PER_KEY).saturating_add(encoded).saturating_add(decoded);
        WorkBudget::new(elements, self.size, limit).check(work)
    }

    /// The work of encoding the chunks, and of decoding those that are covered partially, in steps.
    fn chunk_work(&self, chain: &CodecChain) -> (u64, u64) {
        let (chunks, partial) = (self.layout.chunks(), self.layout.partial());
        let len = self.chunk_len(chain.representation().shape());
        match chain.partial_access() {
            PartialAccess::Shard(sharding) => {
                let complete = chain.encode_work(len).saturating_mul(chunks.saturating_sub(partial));
                // Of a partially covered shard, only the inner chunks that are touched are encoded; the others are
                // copied.
                let inner = self
                    .layout
                    .pieces_of(sharding.inner_chunk_shape())
                    .min(sharding.num_inner_chunks().saturating_mul(partial));
                let inner_len = self.chunk_len(sharding.inner_chunk_shape());
                let copied = len.saturating_add(sharding.index_work()).saturating_mul(partial);
                let encoded = sharding.inner_chain().encode_work(inner_len).saturating_mul(inner);
                let decoded = sharding.inner_chain().decode_work(inner_len).saturating_mul(inner);
                (complete.saturating_add(copied).saturating_add(encoded), decoded)
            }
            _ => (chain.encode_work(len).saturating_mul(chunks), chain.decode_work(len).saturating_mul(partial)),
        }
    }

    /// Fails if a chunk could be written that is too large to be read, whatever its content.
    fn check_readable(&self, chain: &CodecChain) -> Result<(), ArrayError> {
        match chain.partial_access() {
            PartialAccess::Shard(sharding) => {
                self.check_size(sharding.index_size().saturating_mul(3))?;
                self.check_readable(sharding.inner_chain())
            }
            PartialAccess::Elements(_) => Ok(()),
            // Every stored chunk has at least one byte.
            PartialAccess::Full => self.check_size(chain.working_memory().unwrap_or(0).saturating_add(1)),
        }
    }

    /// The memory of an element in bytes; of variable length, that of its slot.
    pub(crate) fn element_size(&self) -> u64 {
        self.size.map_or(size_of::<u64>() as u64, |size| size as u64)
    }

    /// The memory for encoding a chunk of this shape, in bytes.
    pub(crate) fn chunk_memory(&self, shape: &[u64]) -> Result<u64, ArrayError> {
        Ok(encoding_memory(&*self.array.chain(shape)?))
    }

    /// The minimum memory: for a window and the part of it that is put back, for one chunk or a batch of small ones,
    /// and for staged chunks.
    fn min_memory(&self, chain: &CodecChain) -> MinMemory {
        let elements = self.layout.elements();
        let len = elements.saturating_mul(self.element_size());
        let chunks = self.layout.chunks();
        let chunk = encoding_memory(chain);
        let batch = chunk.saturating_add(BATCH * 2).min(chunk.saturating_mul(chunks));
        let staged = chunks.saturating_mul(STAGED_CHUNK_OVERHEAD).saturating_add(len.min(MAX_INLINE_VALUES));
        let made = staged.saturating_add(repeated::MEMORY.min(len));
        let encoder = batch.min(self.context.options.max_chunk_memory());
        MinMemory { window: len.min(RESERVATION_STEP).saturating_mul(2), encoder, made }
    }

    /// The keys of a chunk in the order of lookup. The last is written: for scalars of the draft it is the one that
    /// zarr-python uses.
    pub(crate) fn keys(&self, position: &[u64]) -> Result<Vec<Key>, WriteError> {
        let keys: Vec<Key> = self.array.chunk_keys(position).collect();
        if keys.is_empty() { Err(ArrayError::ChunkKey { path: self.array.path().clone() }.into()) } else { Ok(keys) }
    }

    /// Reads a stored chunk.
    pub(crate) async fn read(&self, part: &ChunkPart) -> Result<Stored, WriteError> {
        let keys = self.keys(&part.position)?;
        let undecodable = match part.coverage {
            Coverage::Array => Undecodable::Missing,
            Coverage::Full | Coverage::Partial => Undecodable::Error,
        };
        let mut stored =
            Stored { versions: Vec::new(), key: first(&keys)?, content: StoredContent::Nothing, undecodable };
        for key in keys {
            if !matches!(stored.content, StoredContent::Nothing) {
                stored.versions.push(self.context.store.head(&key).await?.map(|info| info.version));
                continue;
            }
            let Some(value) = self.context.store.get(&key, None).await? else {
                stored.versions.push(None);
                continue;
            };
            stored.versions.push(Some(value.meta.version));
            let chain = self.array.chain(&part.shape)?;
            stored.content = match self.cached_chunk(&chain, &key, value.meta.version) {
                Some(elements) => StoredContent::Decoded(elements),
                None => match (self.check_stored(&chain, &key, value.meta.size), undecodable) {
                    (Ok(()), _) => StoredContent::Encoded(value.bytes().await?),
                    (Err(_), Undecodable::Missing) => StoredContent::Nothing,
                    (Err(error), Undecodable::Error) => return Err(error.into()),
                },
            };
            stored.key = key;
        }
        Ok(stored)
    }

    /// The decoded chunk, if it is cached.
    fn cached_chunk(&self, chain: &CodecChain, key: &Key, version: Version) -> Option<Elements> {
        if matches!(chain.partial_access(), PartialAccess::Shard(_)) {
            return None;
        }
        let metadata = self.array.metadata_hash();
        let place = CacheKey { key: key.clone(), version, start: 0, kind: CacheKind::Chunk, metadata };
        match self.context.cache.get(&place)? {
            Cached::Chunk(elements) => Some(elements),
            Cached::Index(_) => None,
        }
    }

    /// Assembles, encodes and stages chunks.
    pub(crate) async fn encode_chunks(self: &Arc<Self>, works: Vec<EncodeJob>) -> Result<Vec<StagedChunk>, WriteError> {
        let bytes: u64 = works.iter().map(|work| self.chunk_len(&work.shape)).sum();
        let mut cost = Cost::of(Work::Encode, bytes);
        if !cost.is_at_once() {
            cost = cost.with_steps(works.iter().map(|work| self.encode_work(work)).sum::<Result<u64, _>>()?);
        }
        let target = self.clone();
        let encode = move || works.into_iter().map(|work| target.encode(work)).collect::<Result<Vec<_>, _>>();
        let encoded = self.context.run(cost, encode).await??;
        stream::iter(encoded).map(|chunk| self.stage(chunk)).buffered(STAGE_CONCURRENCY).try_collect().await
    }

    /// The size of a chunk of this shape in bytes; of variable length, without the elements' own.
    pub(crate) fn chunk_len(&self, shape: &[u64]) -> u64 {
        let elements = shape.iter().fold(1_u64, |product, &extent| product.saturating_mul(extent));
        elements.saturating_mul(self.element_size())
    }

    /// The work of encoding a chunk, in steps.
    fn encode_work(&self, work: &EncodeJob) -> Result<u64, ArrayError> {
        let chain = self.array.chain(&work.shape)?;
        let len = self.chunk_len(&work.shape);
        let before = match &work.under {
            BaseContent::Nothing => 0,
            BaseContent::Stored(_) => chain.decode_work(len),
        };
        Ok(chain.encode_work(len).saturating_add(before))
    }

    fn encode(&self, work: EncodeJob) -> Result<EncodedValue, WriteError> {
        let keys = self.keys(&work.position)?;
        let filling = match (&work.under, work.patches.as_slice()) {
            (BaseContent::Nothing, [patch]) => Filling::of(&work.shape, patch),
            _ => None,
        };
        if let Some(bytes) = filling.as_ref().and_then(|filling| self.repeated.get(filling)) {
            return Ok(EncodedValue { keys, bytes, read: None });
        }
        let chain = self.array.chain(&work.shape)?;
        let (before, read, key, undecodable) = match work.under {
            BaseContent::Nothing => (StoredContent::Nothing, None, first(&keys)?, Undecodable::Error),
            BaseContent::Stored(Stored { versions, key, content, undecodable }) => {
                (content, Some(versions), key, undecodable)
            }
        };
        let context = RewriteContext {
            budget: self.context.options.slab_memory / 2,
            memory: self.context.options.max_chunk_memory(),
            undecodable,
            buffers: &self.context.buffers,
        };
        let was_stored = read.iter().flatten().any(Option::is_some);
        let empty = if was_stored { self.emptied } else { self.empty };
        let rewritten = rewrite(&chain, before, work.patches, empty, context);
        let bytes = rewritten.map_err(|error| match error {
            RewriteError::Misplaced => ArrayError::Misplaced { path: self.array.path().clone() }.into(),
            RewriteError::TooLarge { size } => {
                let limit = context.memory;
                ArrayError::ChunkTooLarge { path: self.array.path().clone(), size, limit }.into()
            }
            RewriteError::OverBudget => ArrayError::OverBudget { budget: context.budget }.into(),
            RewriteError::Decode(source) => undecodable_chunk(key, source).into(),
            RewriteError::Encode(source) => WriteError::Encode { key, source },
        })?;
        if let Some(filling) = filling {
            self.repeated.keep(filling, &bytes);
        }
        Ok(EncodedValue { keys, bytes, read })
    }

    async fn stage(&self, chunk: EncodedValue) -> Result<StagedChunk, WriteError> {
        let EncodedValue { keys, bytes, read } = chunk;
        let staged = match bytes {
            Some(bytes) => Some(self.context.writes()?.stage(&last(&keys)?, bytes.into()).await?),
            None => None,
        };
        Ok(StagedChunk { keys, staged, read })
    }

    fn check_stored(&self, chain: &CodecChain, key: &Key, len: u64) -> Result<(), ArrayError> {
        if let Some(limit) = chain.encoded_size().map(EncodedSizeBound::max).filter(|&limit| len > limit) {
            return Err(undecodable_chunk(key.clone(), CodecError::OutputTooLong { codec: "the stored chunk", limit }));
        }
        self.check_size(working_len(chain).saturating_add(len))
    }

    fn check_size(&self, size: u64) -> Result<(), ArrayError> {
        let limit = self.context.options.max_chunk_memory();
        if size <= limit {
            return Ok(());
        }
        Err(ArrayError::ChunkTooLarge { path: self.array.path().clone(), size, limit })
    }
}

struct EncodedValue {
    keys: Vec<Key>,
    bytes: Option<Bytes>,
    read: Option<Vec<Option<Version>>>,
}

impl StagedChunk {
    /// True if it is stored.
    pub(crate) fn is_stored(&self) -> bool {
        self.staged.is_some()
    }

    /// True if it had no value when it was read, and gets none.
    pub(crate) fn is_left_absent(&self) -> bool {
        self.staged.is_none() && self.read.as_ref().is_some_and(|read| read.iter().all(Option::is_none))
    }

    /// Its keys.
    pub(crate) fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Makes it depend on versions of its keys, if it depends on none: on their absence at first.
    pub(crate) fn expect_absent(&mut self) {
        let keys = self.keys.len();
        self.read.get_or_insert_with(|| vec![None; keys]);
    }

    /// Makes it depend on the versions that its keys have now. It covers all elements of the chunk that matter.
    pub(crate) fn expect(&mut self, current: Vec<Option<Version>>) {
        self.read = Some(current);
    }

    /// True if one of its keys is among these.
    pub(crate) fn is_among(&self, keys: &[Key]) -> bool {
        self.keys.iter().any(|key| keys.contains(key))
    }

    /// True if it was derived from these versions of its keys.
    pub(crate) fn is_based_on(&self, current: &[Option<Version>]) -> bool {
        self.read.as_ref().is_none_or(|read| read == current)
    }

    /// The changes that store it: its last key is set, or erased, and the others are erased.
    pub(crate) fn changes(&self) -> impl Iterator<Item = Change> {
        self.keys.iter().enumerate().map(|(number, key)| {
            let read = self.read.as_ref().and_then(|read| read.get(number));
            let precondition = read.map_or_else(Precondition::none, |version| Precondition::unchanged(*version));
            match self.staged.as_ref().filter(|_| number + 1 == self.keys.len()) {
                Some(staged) => Change::Set { staged: staged.clone(), precondition },
                None => Change::Erase { key: key.clone(), precondition },
            }
        })
    }
}

/// The memory for assembling a chunk, in bytes. Inner chunks of a shard are assembled in turn, and together are no
/// larger than it.
fn working_len(chain: &CodecChain) -> u64 {
    let shard_len =
        |sharding: &ShardingCodec| Some(chain.representation().fixed_size()?.saturating_add(sharding.working_memory()));
    let len = if let PartialAccess::Shard(sharding) = chain.partial_access() {
        shard_len(sharding)
    } else {
        chain.working_memory()
    };
    len.unwrap_or_else(|| chain.representation().num_elements().saturating_mul(NOMINAL_VARIABLE_SIZE))
}

/// The memory for encoding a chunk, in bytes: the stored or encoded chunk takes as much as the assembled one.
fn encoding_memory(chain: &CodecChain) -> u64 {
    working_len(chain).saturating_mul(2).saturating_add(chain.encoder_memory())
}

fn first(keys: &[Key]) -> Result<Key, ArrayError> {
    keys.first().cloned().ok_or(ArrayError::ShuttingDown)
}

fn last(keys: &[Key]) -> Result<Key, ArrayError> {
    keys.last().cloned().ok_or(ArrayError::ShuttingDown)
}

fn undecodable_chunk(key: Key, source: CodecError) -> ArrayError {
    match source {
        CodecError::BudgetExceeded { budget, .. } => ArrayError::OverBudget { budget },
        source => ArrayError::Chunk { key, source },
    }
}
