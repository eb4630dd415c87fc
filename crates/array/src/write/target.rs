//! Encoding chunks, and staging them.

use std::sync::Arc;

use bytes::Bytes;
use codec::{Access, Chain, CodecError, Elements, EncodedLen};
use futures::{StreamExt, TryStreamExt, stream};
use store::{Change, Key, Precondition, Staged, Version};

use super::{
    WriteError,
    copy::{Base, Patch, assemble},
    layout::{Beyond, Layout, Part},
};
use crate::{
    ArrayError, EmptyChunks,
    array::Array,
    cache::{CacheKey, Cached, Kind},
    shared::Shared,
};

/// How many bytes of chunks are assembled and encoded on the async thread: what takes less time than the way to another thread.
const INLINE: u64 = 32 << 10;

/// How many bytes an element of variable length is taken to have.
const PER_VARIABLE: u64 = 32;

/// How many chunks of one batch are staged at a time.
const STAGED_ABREAST: usize = 8;

/// An array that is written to, and the region.
pub(super) struct Target {
    pub(super) shared: Arc<Shared>,
    pub(super) array: Array,
    pub(super) layout: Layout,
    /// The size of an element; `None` where each has its own.
    pub(super) size: Option<usize>,
    empty: EmptyChunks,
}

/// A chunk that is to be made.
pub(super) struct Work {
    pub(super) position: Vec<u64>,
    pub(super) shape: Vec<u64>,
    pub(super) under: Under,
    pub(super) patches: Vec<Patch>,
}

/// What is under the patches.
pub(super) enum Under {
    /// Nothing that matters.
    Overwritten(Beyond),
    /// What is stored.
    Stored(Stored),
}

/// A chunk as it is stored.
pub(super) struct Stored {
    /// The version of each of its keys.
    versions: Vec<Option<Version>>,
    content: StoredContent,
}

enum StoredContent {
    Missing,
    Encoded(Key, Bytes),
    Decoded(Elements),
}

/// A chunk that was made.
#[derive(Debug)]
pub(super) struct Made {
    keys: Vec<Key>,
    /// `None` for one that is not stored, since it is full of the fill value.
    staged: Option<Staged>,
    /// The versions of the keys that it was made of; `None` where it does not matter what they have.
    read: Option<Vec<Option<Version>>>,
}

impl Target {
    /// Fails where a chunk is too large to be encoded here.
    pub(super) fn new(shared: Arc<Shared>, array: Array, layout: Layout) -> Result<Self, ArrayError> {
        let model = array.model();
        let empty = match model.skips_empty_chunks() {
            true => EmptyChunks::Skip,
            false => shared.options.empty_chunks,
        };
        let size = model.data_type.fixed_size();
        let target = Self { empty, size, shared, array, layout };
        if let Some(chain) = target.array.largest_chain()? {
            target.fits(chain.working_len().unwrap_or(0))?;
        }
        Ok(target)
    }

    /// How many bytes of memory an element takes; of variable length, without its own.
    pub(super) fn per_element(&self) -> u64 {
        self.size.map_or(size_of::<u64>() as u64, |size| size as u64)
    }

    /// How many bytes making one chunk of this shape takes.
    pub(super) fn memory(&self, shape: &[u64]) -> Result<u64, ArrayError> {
        let chain = self.array.chain(shape)?;
        let assembled = chain.working_len().unwrap_or_else(|| chain.array().elements().saturating_mul(PER_VARIABLE));
        // What is stored of it, or is made of it, beside it.
        Ok(assembled.saturating_mul(2))
    }

    /// The keys of a chunk, the first of which is the one to write.
    pub(super) fn keys(&self, position: &[u64]) -> Result<Vec<Key>, WriteError> {
        let keys: Vec<Key> = self.array.chunk_keys(position).collect();
        if keys.is_empty() { Err(WriteError::ChunkKey { path: self.array.path().clone() }) } else { Ok(keys) }
    }

    /// Reads what is stored of a chunk.
    pub(super) async fn read(&self, part: &Part) -> Result<Stored, WriteError> {
        let mut versions = Vec::new();
        let mut content = StoredContent::Missing;
        for key in self.keys(&part.position)? {
            if !matches!(content, StoredContent::Missing) {
                versions.push(self.shared.store.head(&key).await?.map(|info| info.version));
                continue;
            }
            let Some(value) = self.shared.store.get(&key, None).await? else {
                versions.push(None);
                continue;
            };
            let version = value.info.version;
            versions.push(Some(version));
            let chain = self.array.chain(&part.shape)?;
            let kept = (!matches!(chain.access(), Access::Shard(_)))
                .then(|| {
                    let metadata = self.array.stamp();
                    let place = CacheKey { key: key.clone(), version, start: 0, kind: Kind::Chunk, metadata };
                    self.shared.cache.get(&place)
                })
                .flatten();
            content = match kept {
                Some(Cached::Chunk(elements)) => StoredContent::Decoded(elements),
                _ => {
                    self.check_stored(&chain, &key, value.info.size)?;
                    StoredContent::Encoded(key, value.bytes().await?)
                }
            };
        }
        Ok(Stored { versions, content })
    }

    /// Makes chunks: assembles, encodes and stages them.
    pub(super) async fn make(self: &Arc<Self>, works: Vec<Work>) -> Result<Vec<Made>, WriteError> {
        let bytes: u64 = works.iter().map(|work| self.chunk_len(&work.shape)).sum();
        let encoded = if bytes <= INLINE {
            works.into_iter().map(|work| self.encode(work)).collect::<Result<Vec<_>, _>>()?
        } else {
            let target = self.clone();
            let encode = move || works.into_iter().map(|work| target.encode(work)).collect::<Result<Vec<_>, _>>();
            self.shared.on_blocking_pool(encode).await?
        };
        stream::iter(encoded).map(|chunk| self.stage(chunk)).buffered(STAGED_ABREAST).try_collect().await
    }

    /// How many bytes a chunk of this shape has; of variable length, without the elements' own.
    pub(super) fn chunk_len(&self, shape: &[u64]) -> u64 {
        let elements = shape.iter().fold(1_u64, |product, &extent| product.saturating_mul(extent));
        elements.saturating_mul(self.per_element())
    }

    fn encode(&self, work: Work) -> Result<Encoded, WriteError> {
        let keys = self.keys(&work.position)?;
        let chain = self.array.chain(&work.shape)?;
        let (base, read) = match work.under {
            Under::Overwritten(beyond) => (Base::Overwritten(beyond), None),
            Under::Stored(stored) => (self.decode(&chain, stored.content)?, Some(stored.versions)),
        };
        let elements = assemble(chain.array(), base, &work.patches)
            .map_err(|_| ArrayError::Misplaced { path: self.array.path().clone() })?;
        drop(work.patches);
        if self.empty == EmptyChunks::Skip && elements.are_all(chain.array().fill_value()) {
            return Ok(Encoded { keys, bytes: None, read });
        }
        match chain.encode(elements) {
            Ok(bytes) => Ok(Encoded { keys, bytes: Some(bytes), read }),
            Err(source) => Err(WriteError::Encode { key: first(&keys)?, source }),
        }
    }

    fn decode(&self, chain: &Chain, content: StoredContent) -> Result<Base, WriteError> {
        match content {
            StoredContent::Missing => Ok(Base::Missing),
            StoredContent::Decoded(elements) => Ok(Base::Stored(elements)),
            StoredContent::Encoded(key, bytes) => {
                let decoded = chain.decode(bytes, self.shared.options.assembly / 2);
                decoded.map(Base::Stored).map_err(|source| undecodable(key, source).into())
            }
        }
    }

    async fn stage(&self, chunk: Encoded) -> Result<Made, WriteError> {
        let Encoded { keys, bytes, read } = chunk;
        let staged = match bytes {
            Some(bytes) => Some(self.shared.store.stage(&first(&keys)?, bytes.into()).await?),
            None => None,
        };
        Ok(Made { keys, staged, read })
    }

    fn check_stored(&self, chain: &Chain, key: &Key, len: u64) -> Result<(), ArrayError> {
        if let Some(limit) = chain.encoded_len().map(EncodedLen::max).filter(|&limit| len > limit) {
            return Err(undecodable(key.clone(), CodecError::TooLong { codec: "the stored chunk", limit }));
        }
        self.fits(chain.working_len().unwrap_or(0).saturating_add(len))
    }

    fn fits(&self, size: u64) -> Result<(), ArrayError> {
        let limit = self.shared.options.chunk_memory();
        if size <= limit {
            return Ok(());
        }
        Err(ArrayError::ChunkTooLarge { path: self.array.path().clone(), size, limit })
    }
}

struct Encoded {
    keys: Vec<Key>,
    bytes: Option<Bytes>,
    read: Option<Vec<Option<Version>>>,
}

impl Made {
    /// Whether it is stored, or left out.
    pub(super) fn is_stored(&self) -> bool {
        self.staged.is_some()
    }

    /// Its keys.
    pub(super) fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Whether what it was made of is what the keys have, by these versions.
    pub(super) fn is_of(&self, current: &[Option<Version>]) -> bool {
        self.read.as_ref().is_none_or(|read| read == current)
    }

    /// The changes that put it into the store: its first key is set, or erased, and the others are erased.
    pub(super) fn changes(&self) -> impl Iterator<Item = Change> {
        self.keys.iter().enumerate().map(|(number, key)| {
            let read = self.read.as_ref().and_then(|read| read.get(number));
            let precondition = read.map_or_else(Precondition::none, |version| Precondition::unchanged(*version));
            match self.staged.as_ref().filter(|_| number == 0) {
                Some(staged) => Change::Set { staged: staged.clone(), precondition },
                None => Change::Erase { key: key.clone(), precondition },
            }
        })
    }
}

fn first(keys: &[Key]) -> Result<Key, ArrayError> {
    keys.first().cloned().ok_or(ArrayError::Stopped)
}

fn undecodable(key: Key, source: CodecError) -> ArrayError {
    match source {
        CodecError::OverBudget { budget, .. } => ArrayError::OverBudget { budget },
        source => ArrayError::Chunk { key, source },
    }
}
