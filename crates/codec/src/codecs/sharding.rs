//! The `sharding_indexed` codec: stores a chunk as a shard of inner chunks.
//!
//! - Kind: array to bytes
//! - Names: `sharding_indexed` (v3); the draft's storage transformer `sharding/1.0` of type `indexed` (zarr-python 2.13
//!   to 2.18) is read into it, with an index that has no checksum
//! - Specification: [sharding codec
//!   1.0](https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed/index.html)
//!
//! ## Configuration
//!
//! ```json
//! {"chunk_shape": [32, 32], "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip", "configuration": {"level": 1}}],
//!  "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}], "index_location": "end"}
//! ```
//!
//! `chunk_shape` divides the shape of the shard. `index_codecs` defaults to `bytes` (little-endian) and `crc32c`,
//! `index_location` to `end`.
//!
//! ## Encoded bytes
//!
//! The encoded inner chunks in any order, with gaps allowed, and an index of `(offset, length)` pairs before or after
//! them. An inner chunk that is equal to the fill value is not stored.
//!
//! ## Errors and limits
//!
//! An inner chunk lies within the shard and outside its index, and is at most as long as its chain allows. Inner chunks
//! may share bytes unless they are shards. The index's chain consists of codecs with an exact encoded size. Shards are
//! nested at most [`MAX_SHARD_DEPTH`](zarrd_meta::limits::MAX_SHARD_DEPTH) deep.

use std::{any::Any, collections::BTreeMap, ops::Range, sync::Arc};

use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use zarrd_meta::{
    codecs::{CodecSpec, Namespace},
    data_type::parse_v3,
    grid::ChunkGrid,
};

use super::tiling::{self, Tiles};
use crate::{
    ArrayToBytes, ChainError, ChunkRepresentation, Codec, CodecChain, CodecError, CodecFactory, CodecInput, Elements,
    EncodedSizeBound, FactoryContext,
    factory::{invalid_configuration, parse_configuration},
};

const NAME: &str = "sharding_indexed";

/// The offset and length of a missing inner chunk in the index.
const MISSING_CHUNK: u64 = u64::MAX;

/// The work of reading or writing a byte of the index and searching it, in steps.
const INDEX_STEPS_PER_BYTE: u64 = 4;

/// The size of an index entry in bytes: two `u64`.
const ENTRY_SIZE: u64 = 16;

pub(crate) static FACTORIES: &[CodecFactory] = &[CodecFactory { namespace: Namespace::V3, name: NAME, create }];

/// The `sharding_indexed` codec for chunks of one representation.
#[derive(Debug)]
pub struct ShardingCodec {
    shard: ChunkRepresentation,
    inner: Arc<CodecChain>,
    /// The number of inner chunks along each dimension, and in total.
    inner_grid: Vec<u64>,
    inner_chunks: u64,
    index: CodecChain,
    index_size: u64,
    location: IndexLocation,
}

/// The locations of the inner chunks of one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardIndex {
    /// Pairs of offset and length, in C order of the inner chunks.
    entries: Vec<[u64; 2]>,
    shard_size: u64,
    /// The range of the index in the shard.
    index_range: Range<u64>,
    max_inner_size: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    chunk_shape: Vec<u64>,
    codecs: Vec<Value>,
    #[serde(default = "default_index_codecs")]
    index_codecs: Vec<Value>,
    #[serde(default)]
    index_location: IndexLocation,
}

/// The location of the index in a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum IndexLocation {
    Start,
    #[default]
    End,
}

impl ShardingCodec {
    /// The codec, if it is a sharding codec.
    pub(crate) fn downcast(codec: &dyn ArrayToBytes) -> Option<&Self> {
        let codec: &dyn Any = codec;
        codec.downcast_ref()
    }

    /// The chain of the inner chunks.
    pub fn inner_chain(&self) -> &Arc<CodecChain> {
        &self.inner
    }

    /// The number of inner chunks, including those that are not stored.
    pub fn num_inner_chunks(&self) -> u64 {
        self.inner_chunks
    }

    /// The shape of an inner chunk.
    pub fn inner_chunk_shape(&self) -> &[u64] {
        self.inner.representation().shape()
    }

    /// The grid of the inner chunks within the shard.
    pub fn inner_grid(&self) -> Option<ChunkGrid> {
        ChunkGrid::regular(self.inner_chunk_shape())
    }

    /// The position of an inner chunk in the index; `None` if the shard has no chunk with these indices.
    pub fn index_position(&self, inner: &[u64]) -> Option<u64> {
        if inner.len() != self.inner_grid.len() {
            return None;
        }
        self.inner_grid.iter().zip(inner).try_fold(0_u64, |position, (&count, &index)| {
            if index >= count { None } else { position.checked_mul(count)?.checked_add(index) }
        })
    }

    /// True if the index is at the end of a shard, false if it is at the start.
    pub fn index_is_last(&self) -> bool {
        self.location == IndexLocation::End
    }

    /// The encoded size of the index in bytes.
    pub fn index_size(&self) -> u64 {
        self.index_size
    }

    /// The memory for reading or writing a shard in addition to the shard and its encoded form, in bytes: the index,
    /// encoded and decoded, and the memory for one inner chunk.
    pub fn working_memory(&self) -> u64 {
        let inner = self.inner.working_memory().unwrap_or(0);
        self.index_size.saturating_mul(4).saturating_add(inner)
    }

    /// The work of reading or writing a shard's index, in steps.
    pub fn index_work(&self) -> u64 {
        self.index_size.saturating_mul(INDEX_STEPS_PER_BYTE)
    }

    /// The work on the index, and of locating each row of each inner chunk, in steps.
    fn tiles_work(&self) -> u64 {
        let row = self.inner_chunk_shape().last().copied().unwrap_or(1).max(1);
        let rows = self.shard.num_elements() / row;
        self.index_work().saturating_add(rows.saturating_mul(self.inner_chunk_shape().len() as u64 + 1))
    }

    /// The range of the index in a shard of `shard_size` bytes. Fails if the shard is too short.
    pub fn index_range(&self, shard_size: u64) -> Result<Range<u64>, CodecError> {
        let rest = shard_size.checked_sub(self.index_size).ok_or(CodecError::LengthMismatch {
            codec: NAME,
            expected: self.index_size,
            found: shard_size,
        })?;
        Ok(match self.location {
            IndexLocation::Start => 0..self.index_size,
            IndexLocation::End => rest..shard_size,
        })
    }

    /// Reads the index of a shard of `shard_size` bytes. Allocates at most as much as the [index](Self::index_size)
    /// has.
    pub fn read_index(&self, encoded: Bytes, shard_size: u64) -> Result<ShardIndex, CodecError> {
        let index_range = self.index_range(shard_size)?;
        check_index_size(encoded.len() as u64, self.index_size)?;
        let Elements::Fixed(decoded) = self.index.decode(encoded, self.index_size)? else {
            return Err(invalid_index());
        };
        let (pairs, []) = decoded.as_chunks::<{ ENTRY_SIZE as usize }>() else { return Err(invalid_index()) };
        let entries = pairs.iter().map(|pair| {
            let number = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |number, &byte| (number << 8) | u64::from(byte));
            let (offset, length) = pair.split_at(pair.len() / 2);
            [number(offset), number(length)]
        });
        let max_inner_size = self.inner.encoded_size().map_or(u64::MAX, EncodedSizeBound::max);
        let index = ShardIndex { entries: entries.collect(), shard_size, index_range, max_inner_size };
        // Shared bytes would multiply the work at each nesting depth.
        if Self::downcast(self.inner.array_to_bytes.as_ref()).is_some() && index.inner_size() > shard_size {
            return Err(CodecError::Malformed { codec: NAME, reason: "inner shards share bytes" });
        }
        Ok(index)
    }

    /// Assembles a shard from encoded inner chunks. `changed` has new chunks by their [position](Self::index_position),
    /// and `None` for chunks that become missing; other chunks are copied from `before`, an encoded shard with its
    /// index.
    pub fn assemble(
        &self,
        before: Option<(&Bytes, &ShardIndex)>,
        changed: &BTreeMap<u64, Option<Bytes>>,
    ) -> Result<Bytes, CodecError> {
        let mut shard = ShardWriter::new(self)?;
        for position in 0..self.inner_chunks {
            match (changed.get(&position), before) {
                (Some(chunk), _) => shard.push(chunk.as_deref()),
                (None, Some((bytes, index))) => {
                    let chunk = index.locate(position)?.map(|range| slice(bytes, range)).transpose()?;
                    shard.push(chunk.as_deref());
                }
                (None, None) => shard.push(None),
            }
        }
        shard.finish()
    }

    /// The inner chunks of the shard, in the order of the index.
    fn tiles(&self) -> Result<Tiles, CodecError> {
        Tiles::new(&self.shard, self.inner_chunk_shape()).ok_or_else(invalid_index)
    }
}

impl ShardIndex {
    /// The size in memory, in bytes.
    pub fn memory_size(&self) -> u64 {
        ENTRY_SIZE.saturating_mul(self.entries.len() as u64)
    }

    /// The number of inner chunks, including those that are not stored.
    pub fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// True if it has no inner chunks.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The total size of the stored inner chunks in bytes.
    fn inner_size(&self) -> u64 {
        let lengths = (0..self.entries.len() as u64).filter_map(|position| self.locate(position).ok().flatten());
        lengths.fold(0, |sum, range| sum.saturating_add(range.end.saturating_sub(range.start)))
    }

    /// The range of an inner chunk in the shard; `None` for a missing one, which has only fill values.
    pub fn locate(&self, position: u64) -> Result<Option<Range<u64>>, CodecError> {
        let entry = usize::try_from(position).ok().and_then(|position| self.entries.get(position));
        let &[offset, length] = entry.ok_or_else(invalid_index)?;
        if offset == MISSING_CHUNK && length == MISSING_CHUNK {
            return Ok(None);
        }
        let malformed = |reason| Err(CodecError::Malformed { codec: NAME, reason });
        let Some(end) = offset.checked_add(length).filter(|&end| end <= self.shard_size) else {
            return malformed("an inner chunk lies outside its shard");
        };
        if length > 0 && offset < self.index_range.end && self.index_range.start < end {
            return malformed("an inner chunk lies within the index");
        }
        if length > self.max_inner_size {
            return malformed("an inner chunk is longer than its codecs allow");
        }
        Ok(Some(offset..end))
    }
}

/// Writes a shard, one inner chunk after the other.
struct ShardWriter<'a> {
    sharding: &'a ShardingCodec,
    shard: BytesMut,
    entries: Vec<u8>,
}

impl<'a> ShardWriter<'a> {
    fn new(sharding: &'a ShardingCodec) -> Result<Self, CodecError> {
        let mut shard = BytesMut::new();
        if sharding.location == IndexLocation::Start {
            shard.resize(usize::try_from(sharding.index_size).map_err(|_| invalid_index())?, 0);
        }
        Ok(Self { sharding, shard, entries: Vec::new() })
    }

    /// Appends an encoded inner chunk; `None` for one that is not stored.
    fn push(&mut self, chunk: Option<&[u8]>) {
        let [offset, length] = match chunk {
            None => [MISSING_CHUNK; 2],
            Some(bytes) => {
                let offset = self.shard.len() as u64;
                self.shard.extend_from_slice(bytes);
                [offset, bytes.len() as u64]
            }
        };
        self.entries.extend_from_slice(&offset.to_le_bytes());
        self.entries.extend_from_slice(&length.to_le_bytes());
    }

    fn finish(mut self) -> Result<Bytes, CodecError> {
        let index = self.sharding.index.encode(Elements::Fixed(self.entries.into()))?;
        match self.sharding.location {
            IndexLocation::End => self.shard.extend_from_slice(&index),
            IndexLocation::Start => {
                self.shard.get_mut(..index.len()).ok_or_else(invalid_index)?.copy_from_slice(&index);
            }
        }
        Ok(self.shard.freeze())
    }
}

impl ArrayToBytes for ShardingCodec {
    fn decode(&self, encoded: Bytes, budget: u64) -> Result<Elements, CodecError> {
        let shard_size = encoded.len() as u64;
        let index = self.read_index(slice(&encoded, self.index_range(shard_size)?)?, shard_size)?;
        let mut tiles = self.tiles()?;
        let mut assembly = tiling::ChunkAssembler::new(&self.shard, budget)?;
        for position in 0..self.inner_chunks {
            let tile = tiles.next_tile().ok_or_else(invalid_index)?;
            match index.locate(position)? {
                None => assembly.insert_fill_value(&tile)?,
                Some(range) => {
                    let remaining = assembly.remaining();
                    assembly.insert(&tile, self.inner.decode(slice(&encoded, range)?, remaining)?)?;
                }
            }
        }
        assembly.finish()
    }

    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError> {
        let mut tiles = self.tiles()?;
        let mut shard = ShardWriter::new(self)?;
        for _ in 0..self.inner_chunks {
            let tile = tiles.next_tile().ok_or_else(invalid_index)?;
            match tiling::extract(&decoded, &self.shard, &tile)? {
                chunk if chunk.all_equal(self.shard.fill_value()) => shard.push(None),
                chunk => shard.push(Some(&self.inner.encode(chunk)?)),
            }
        }
        shard.finish()
    }

    fn encoded_size(&self) -> Option<EncodedSizeBound> {
        // Writers may leave gaps, for instance if they rewrote an inner chunk; no gaps larger than the chunks
        // themselves.
        let chunks = self.inner.encoded_size()?.max().saturating_mul(self.inner_chunks);
        Some(EncodedSizeBound::AtMost(chunks.saturating_mul(2).saturating_add(self.index_size)))
    }

    fn working_memory(&self) -> u64 {
        Self::working_memory(self)
    }

    fn inner_encoder_memory(&self) -> u64 {
        self.inner.encoder_memory()
    }

    fn inner_decode_work(&self, size: u64) -> u64 {
        self.inner.decode_work_of_chunks(self.inner_chunks, size).saturating_add(self.tiles_work())
    }

    fn inner_encode_work(&self, size: u64) -> u64 {
        self.inner.encode_work_of_chunks(self.inner_chunks, size).saturating_add(self.tiles_work())
    }
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, context: &FactoryContext) -> Result<Codec, ChainError> {
    let shard = input.array(spec)?.clone();
    let context = context.inside_shard()?;
    let Configuration { chunk_shape, codecs, index_codecs, index_location } = parse_configuration(spec)?;
    let inner_grid = inner_grid(&shard, &chunk_shape).ok_or_else(|| {
        invalid_configuration(spec, format!("cannot divide a shard of {:?} into {chunk_shape:?}", shard.shape()))
    })?;
    let inner_chunks = inner_grid
        .iter()
        .try_fold(1_u64, |product, &count| product.checked_mul(count))
        .ok_or(ChainError::ChunkTooLarge)?;
    let inner = ChunkRepresentation::new(shard.data_type().clone(), chunk_shape, shard.fill_value().clone())?;
    let inner = Arc::new(context.chain(&parse_inner_codecs(spec, &codecs)?, inner)?);
    let index = index_representation(&inner_grid)?;
    let index = context.chain(&parse_inner_codecs(spec, &index_codecs)?, index)?;
    let index_size = index
        .encoded_size()
        .and_then(EncodedSizeBound::exact)
        .ok_or_else(|| invalid_configuration(spec, "has index_codecs without an exact encoded size"))?;
    let sharding =
        ShardingCodec { shard, inner, inner_grid, inner_chunks, index, index_size, location: index_location };
    Ok(Codec::ArrayToBytes(Arc::new(sharding)))
}

/// The number of inner chunks along each dimension; `None` unless their shape divides that of the shard.
fn inner_grid(shard: &ChunkRepresentation, inner: &[u64]) -> Option<Vec<u64>> {
    if inner.len() != shard.shape().len() {
        return None;
    }
    let count = |(&outer, &inner): (&u64, &u64)| (outer.checked_rem(inner)? == 0).then(|| outer / inner);
    shard.shape().iter().zip(inner).map(count).collect()
}

/// The representation of the index: an array with the offset and length of each inner chunk.
fn index_representation(inner_grid: &[u64]) -> Result<ChunkRepresentation, ChainError> {
    let data_type =
        parse_v3(&json!("uint64")).map_err(|error| ChainError::UnknownCodec { codec: error.to_string() })?;
    let shape = inner_grid.iter().copied().chain([2]).collect();
    ChunkRepresentation::new(data_type, shape, MISSING_CHUNK.to_le_bytes().to_vec())
}

fn parse_inner_codecs(spec: &CodecSpec, codecs: &[Value]) -> Result<Vec<CodecSpec>, ChainError> {
    let inner = |codec| {
        CodecSpec::parse_v3(codec).map_err(|source| ChainError::MalformedInnerCodec { codec: spec.full_name(), source })
    };
    codecs.iter().map(inner).collect()
}

fn default_index_codecs() -> Vec<Value> {
    let little: Map<String, Value> = [("endian".to_owned(), json!("little"))].into_iter().collect();
    vec![json!({"name": "bytes", "configuration": little}), json!({"name": "crc32c"})]
}

fn slice(shard: &Bytes, range: Range<u64>) -> Result<Bytes, CodecError> {
    let bound = |bound| usize::try_from(bound).ok().filter(|&bound| bound <= shard.len()).ok_or_else(invalid_index);
    let (start, end) = (bound(range.start)?, bound(range.end)?);
    if start > end { Err(invalid_index()) } else { Ok(shard.slice(start..end)) }
}

fn check_index_size(found: u64, expected: u64) -> Result<(), CodecError> {
    if found == expected { Ok(()) } else { Err(CodecError::LengthMismatch { codec: NAME, expected, found }) }
}

fn invalid_index() -> CodecError {
    CodecError::Malformed { codec: NAME, reason: "the index does not match the shard" }
}
