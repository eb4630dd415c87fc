//! Reading the index of a shard.

use std::sync::Arc;

use zarrd_codec::{CodecChain, CodecError, PartialAccess, ShardIndex, ShardingCodec};
use zarrd_store::{ByteRange, CachedMeta, Key, StoreError};

use super::{
    context::ReadContext,
    encoded_chunk::{EncodedChunk, LocatedChunk},
};
use crate::{
    cache::{CacheKind, Cached},
    error::ArrayError,
};

/// A shard with its index.
#[derive(Debug)]
pub(crate) struct IndexedShard {
    pub(crate) part: EncodedChunk,
    pub(crate) index: Arc<ShardIndex>,
}

/// The shard at a position of the grid, with its index; `None` if it is not stored.
pub(crate) async fn find(
    source: Arc<ReadContext>,
    position: Vec<u64>,
    chain: Arc<CodecChain>,
) -> Result<Option<IndexedShard>, ArrayError> {
    let key = match source.locate_chunk(&position).await? {
        LocatedChunk::Missing => return Ok(None),
        LocatedChunk::Stored(part) => {
            let index = read(&source, &part, &chain).await?;
            return Ok(Some(IndexedShard { part, index }));
        }
        LocatedChunk::Unknown(key) => key,
    };
    // Held until the index is cached.
    let _turn = source.first_request(&key).await;
    match source.snapshot.cached(&key)? {
        CachedMeta::Unknown => read_unknown(&source, key, &chain).await,
        CachedMeta::Known(None) => Ok(None),
        CachedMeta::Known(Some(meta)) => {
            let part = EncodedChunk::of_value(key, meta);
            let index = read(&source, &part, &chain).await?;
            Ok(Some(IndexedShard { part, index }))
        }
    }
}

/// The index of a shard, which may be an inner chunk of another one.
pub(crate) async fn read(
    source: &Arc<ReadContext>,
    part: &EncodedChunk,
    chain: &Arc<CodecChain>,
) -> Result<Arc<ShardIndex>, ArrayError> {
    let sharding = sharding(source, part, chain)?;
    let len = part.len();
    let range = sharding.index_range(len).map_err(|error| source.chunk_error(part, error))?;
    source.check_index_size(sharding)?;
    let range = part.range.start + range.start..part.range.start + range.end;
    let key = source.cache_key(part, range.start, CacheKind::Index);
    let (reader, part, chain) = (source.clone(), part.clone(), chain.clone());
    let read = async move {
        let encoded = reader.fetch(&part.key, range).await?;
        parse(&reader, &part, &chain, encoded)
    };
    index_of(source.cached(key, read).await?)
}

/// Reads the index of a shard of unknown version: the answer has the version and size of the shard as
/// well, or that there is none.
async fn read_unknown(
    source: &Arc<ReadContext>,
    key: Key,
    chain: &Arc<CodecChain>,
) -> Result<Option<IndexedShard>, ArrayError> {
    let unknown = EncodedChunk { key: key.clone(), version: None, range: 0..0 };
    let sharding = sharding(source, &unknown, chain)?;
    source.check_index_size(sharding)?;
    let size = sharding.index_size();
    let wanted = if sharding.index_is_last() { ByteRange::last(size) } else { ByteRange::bounded(0, size) };
    let (meta, value) = match source.open(&key, wanted.ok()).await {
        Ok(Some(value)) => (value.meta.clone(), Some(value)),
        Ok(None) => return Ok(None),
        Err(StoreError::RangeNotSatisfiable { meta }) => (meta, None),
        Err(error) => return Err(error.into()),
    };
    let size = meta.size;
    let part = EncodedChunk::of_value(key, meta);
    let range = sharding.index_range(size).map_err(|error| source.chunk_error(&part, error))?;
    let cached = source.cache_key(&part, range.start, CacheKind::Index);
    let (reader, shard, chain) = (source.clone(), part.clone(), chain.clone());
    let read = async move {
        let encoded = match value {
            Some(value) => reader.receive(value).await?,
            None => reader.fetch(&shard.key, range).await?,
        };
        parse(&reader, &shard, &chain, encoded)
    };
    let index = index_of(source.cached(cached, read).await?)?;
    Ok(Some(IndexedShard { part, index }))
}

fn parse(
    source: &ReadContext,
    part: &EncodedChunk,
    chain: &CodecChain,
    encoded: bytes::Bytes,
) -> Result<Cached, ArrayError> {
    let index = sharding(source, part, chain)?.read_index(encoded, part.len());
    index.map(|index| Cached::Index(Arc::new(index))).map_err(|error| source.chunk_error(part, error))
}

fn sharding<'c>(
    source: &ReadContext,
    part: &EncodedChunk,
    chain: &'c CodecChain,
) -> Result<&'c ShardingCodec, ArrayError> {
    match chain.partial_access() {
        PartialAccess::Shard(sharding) => Ok(sharding),
        PartialAccess::Full | PartialAccess::Elements(_) => Err(source.chunk_error(
            part,
            CodecError::Malformed { codec: "sharding_indexed", reason: "the chunk is not a shard" },
        )),
    }
}

fn index_of(cached: Cached) -> Result<Arc<ShardIndex>, ArrayError> {
    match cached {
        Cached::Index(index) => Ok(index),
        Cached::Chunk(_) => Err(ArrayError::ShuttingDown),
    }
}
