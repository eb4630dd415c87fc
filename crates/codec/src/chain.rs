//! Codecs one after the other.

use std::sync::Arc;

use bytes::Bytes;
use meta::{codecs::CodecSpec, data_type::StoredOrder, limits::MAX_CODECS};

use crate::{
    ArrayToArray, ArrayToBytes, BytesRepresentation, BytesToBytes, ChainError, ChunkRepresentation, Codec, CodecError,
    CodecInput, Cost, Elements, EncodedSizeBound, ShardingCodec,
    codecs::{bytes::ByteSwap, transpose::transposed},
    registry,
};

/// The codecs of an array, made for its chunks.
#[derive(Clone, Debug)]
pub struct CodecChain {
    array: ChunkRepresentation,
    to_array: Vec<Arc<dyn ArrayToArray>>,
    to_bytes: Arc<dyn ArrayToBytes>,
    /// Each with how long the bytes can be that it is given to encode.
    bytes: Vec<(Arc<dyn BytesToBytes>, Option<EncodedSizeBound>)>,
    len: Option<EncodedSizeBound>,
}

/// The parts of a chunk that can be read on their own.
#[derive(Clone, Copy, Debug)]
pub enum PartialAccess<'a> {
    /// None: the chunk is decoded whole.
    Full,
    /// Every element: they are stored one after the other in C order, in this byte order.
    Elements(&'a StoredOrder),
    /// Every inner chunk: it is a shard.
    Shard(&'a ShardingCodec),
}

impl CodecChain {
    /// Makes the codecs of a model for chunks of one representation.
    pub fn new(specs: &[CodecSpec], array: ChunkRepresentation) -> Result<Self, ChainError> {
        Self::new_nested(specs, array, 0)
    }

    /// As [`resolve`](Self::resolve), with `depth` shards around the chain.
    pub(crate) fn new_nested(
        specs: &[CodecSpec],
        array: ChunkRepresentation,
        depth: usize,
    ) -> Result<Self, ChainError> {
        if specs.len() > MAX_CODECS {
            return Err(ChainError::TooManyCodecs { found: specs.len() });
        }
        let mut specs = specs.iter();
        let mut current = array.clone();
        let mut to_array = Vec::new();
        let to_bytes = loop {
            let spec = specs.next().ok_or(ChainError::NoArrayToBytes)?;
            match registry::create(spec, CodecInput::Array(&current), depth)? {
                Codec::ArrayToArray(codec, encoded) => {
                    current = push_array_codec(&mut to_array, current, codec, encoded)?
                }
                Codec::ArrayToBytes(codec) => break codec,
                Codec::BytesToBytes(_) => return Err(ChainError::NoArrayToBytes),
            }
        };
        let to_array = to_array.into_iter().map(|(codec, _)| codec).collect();
        let mut serialized =
            BytesRepresentation { stored_elements: to_bytes.stored_elements(), size: to_bytes.encoded_size() };
        let mut bytes = Vec::new();
        for spec in specs {
            let Codec::BytesToBytes(codec) = registry::create(spec, CodecInput::Bytes(&serialized), depth)? else {
                let reason = "it is given bytes instead of an array".to_owned();
                return Err(ChainError::InvalidPosition { codec: spec.full_name(), reason });
            };
            let encoded = serialized.size.map(|len| output_size(codec.as_ref(), len));
            bytes.push((codec.clone(), serialized.size));
            serialized = BytesRepresentation {
                stored_elements: codec.stored_elements(serialized.stored_elements.as_ref()),
                size: encoded,
            };
        }
        Ok(Self { array, to_array, to_bytes, bytes, len: serialized.size })
    }

    /// The representation of its decoded chunks.
    pub fn representation(&self) -> &ChunkRepresentation {
        &self.array
    }

    /// The bounds of an encoded chunk's size; `None` if elements of variable length leave it open. A larger value is no
    /// chunk of this array.
    pub fn encoded_size(&self) -> Option<EncodedSizeBound> {
        self.len
    }

    /// The memory for decoding or encoding a chunk, at most and without the encoded bytes; `None` if elements of
    /// variable length leave it to the budget.
    pub fn working_memory(&self) -> Option<u64> {
        let stages = self.bytes.iter().map(|(_, len)| len.map(EncodedSizeBound::max));
        let len = stages.into_iter().try_fold(self.array.fixed_size()?, |sum, len| sum.checked_add(len?))?;
        let shard = self.to_bytes.as_sharding().map_or(0, ShardingCodec::working_memory);
        Some(len.saturating_add(shard))
    }

    /// The work of decoding a chunk of `len` bytes, at most, in steps. For elements of a fixed size `len` is ignored.
    pub fn decode_work(&self, len: u64) -> u64 {
        let len = self.array.fixed_size().unwrap_or(len);
        self.work(len, |cost| cost.decode, |sharding| sharding.decode_work(len))
    }

    /// The same to encode one.
    pub fn encode_work(&self, len: u64) -> u64 {
        let len = self.array.fixed_size().unwrap_or(len);
        self.work(len, |cost| cost.encode, |sharding| sharding.encode_work(len))
    }

    /// [`decode_work`](Self::decode_work) of `chunks` chunks that have `len` bytes together.
    pub(crate) fn decode_work_of_chunks(&self, chunks: u64, len: u64) -> u64 {
        self.decode_work(len / chunks.max(1)).saturating_mul(chunks)
    }

    /// [`encode_work`](Self::encode_work) of `chunks` chunks that have `len` bytes together.
    pub(crate) fn encode_work_of_chunks(&self, chunks: u64, len: u64) -> u64 {
        self.encode_work(len / chunks.max(1)).saturating_mul(chunks)
    }

    fn work(&self, len: u64, steps: impl Fn(Cost) -> u64, shard: impl Fn(&ShardingCodec) -> u64) -> u64 {
        let costs =
            self.to_array.iter().map(|codec| codec.cost()).chain(self.bytes.iter().map(|(codec, _)| codec.cost()));
        let steps = costs.fold(steps(self.to_bytes.cost()), |sum, cost| sum.saturating_add(steps(cost)));
        let shard = self.to_bytes.as_sharding().map_or(0, shard);
        steps.saturating_mul(len).saturating_add(shard)
    }

    /// The parts of a chunk that can be read on their own.
    pub fn partial_access(&self) -> PartialAccess<'_> {
        if !self.to_array.is_empty() || !self.bytes.is_empty() {
            return PartialAccess::Full;
        }
        match self.to_bytes.as_sharding() {
            Some(sharding) => PartialAccess::Shard(sharding),
            None => self.to_bytes.stored_order().map_or(PartialAccess::Full, PartialAccess::Elements),
        }
    }

    /// True if its chunks are shards, before or after other codecs.
    pub(crate) fn is_sharded(&self) -> bool {
        self.to_bytes.as_sharding().is_some()
    }

    /// Decodes a chunk. `budget` bounds what elements of variable length, and the bytes that they are made of, may take.
    pub fn decode(&self, encoded: Bytes, budget: u64) -> Result<Elements, CodecError> {
        let mut bytes = encoded;
        for (codec, len) in self.bytes.iter().rev() {
            bytes = codec.decode(bytes, len.map_or(budget, EncodedSizeBound::max))?;
        }
        let elements = self.to_bytes.decode(bytes, budget)?;
        self.to_array.iter().rev().try_fold(elements, |elements, codec| codec.decode(elements))
    }

    /// Decodes a run of the elements of a chunk that has them [one after the other](Access::Elements): any number of whole elements, as they are
    /// stored.
    pub fn decode_elements(&self, stored: Bytes) -> Result<Bytes, CodecError> {
        let Some(order) = self.to_bytes.stored_order() else {
            return Err(CodecError::Malformed {
                codec: "bytes",
                reason: "the elements are not stored one after the other",
            });
        };
        Ok(ByteSwap::new(self.array.data_type(), order).apply(stored))
    }

    /// Encodes a chunk.
    pub fn encode(&self, elements: Elements) -> Result<Bytes, CodecError> {
        let elements = self.to_array.iter().try_fold(elements, |elements, codec| codec.encode(elements))?;
        let bytes = self.to_bytes.encode(elements)?;
        self.bytes.iter().try_fold(bytes, |bytes, (codec, _)| codec.encode(bytes))
    }
}

/// Adds a codec to those before it, each with its input. Consecutive transpositions are composed into one, and dropped
/// if they cancel out, so that parts of a chunk can be read as without them. Returns the input of the next codec.
fn push_array_codec(
    codecs: &mut Vec<(Arc<dyn ArrayToArray>, ChunkRepresentation)>,
    given: ChunkRepresentation,
    codec: Arc<dyn ArrayToArray>,
    encoded: ChunkRepresentation,
) -> Result<ChunkRepresentation, ChainError> {
    let before = codecs.last().and_then(|(before, array)| Some((before.permutation()?, codec.permutation()?, array)));
    if let Some((first, second, array)) = before {
        let order = second.iter().filter_map(|&axis| first.get(axis).copied()).collect();
        let both = transposed(array, order)?;
        if let (Some((codec, encoded)), Some((_, array))) = (both, codecs.pop()) {
            return push_array_codec(codecs, array, codec, encoded);
        }
    }
    if codec.is_identity() {
        return Ok(encoded);
    }
    codecs.push((codec, given));
    Ok(encoded)
}

/// The bounds of a codec's output, given those of its input.
fn output_size(codec: &dyn BytesToBytes, decoded: EncodedSizeBound) -> EncodedSizeBound {
    match (decoded, codec.encoded_size(decoded.max())) {
        (EncodedSizeBound::Exact(_), encoded) => encoded,
        (EncodedSizeBound::AtMost(_), encoded) => EncodedSizeBound::AtMost(encoded.max()),
    }
}
