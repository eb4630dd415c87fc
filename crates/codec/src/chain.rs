//! Codecs one after the other.

use std::sync::Arc;

use bytes::Bytes;
use meta::{codecs::CodecSpec, data_type::StoredOrder, limits::MAX_CODECS};

use crate::{
    ArrayToArray, ArrayToBytes, BytesToBytes, ChainError, CodecError, Cost, Elements, EncodedLen, Input,
    Representation, Resolved, Serialized, Sharding,
    codecs::{bytes::Swap, transpose::transposed},
    registry,
};

/// The codecs of an array, made for its chunks.
#[derive(Clone, Debug)]
pub struct Chain {
    array: Representation,
    to_array: Vec<Arc<dyn ArrayToArray>>,
    to_bytes: Arc<dyn ArrayToBytes>,
    /// Each with how long the bytes can be that it is given to encode.
    bytes: Vec<(Arc<dyn BytesToBytes>, Option<EncodedLen>)>,
    len: Option<EncodedLen>,
}

/// The parts of a chunk that can be read on their own.
#[derive(Clone, Copy, Debug)]
pub enum Access<'a> {
    /// None: the chunk is decoded whole.
    Whole,
    /// Every element: they are stored one after the other in C order, in this byte order.
    Elements(&'a StoredOrder),
    /// Every inner chunk: it is a shard.
    Shard(&'a Sharding),
}

impl Chain {
    /// Makes the codecs of a model for chunks of one representation.
    pub fn resolve(specs: &[CodecSpec], array: Representation) -> Result<Self, ChainError> {
        Self::resolve_within(specs, array, 0)
    }

    /// As [`resolve`](Self::resolve), with `depth` shards around the chain.
    pub(crate) fn resolve_within(specs: &[CodecSpec], array: Representation, depth: usize) -> Result<Self, ChainError> {
        if specs.len() > MAX_CODECS {
            return Err(ChainError::TooManyCodecs { found: specs.len() });
        }
        let mut specs = specs.iter();
        let mut current = array.clone();
        let mut to_array = Vec::new();
        let to_bytes = loop {
            let spec = specs.next().ok_or(ChainError::NoArrayToBytes)?;
            match registry::resolve(spec, Input::Array(&current), depth)? {
                Resolved::ArrayToArray(codec, encoded) => current = push(&mut to_array, current, codec, encoded)?,
                Resolved::ArrayToBytes(codec) => break codec,
                Resolved::BytesToBytes(_) => return Err(ChainError::NoArrayToBytes),
            }
        };
        let to_array = to_array.into_iter().map(|(codec, _)| codec).collect();
        let mut serialized = Serialized { items: to_bytes.items(), len: to_bytes.encoded_len() };
        let mut bytes = Vec::new();
        for spec in specs {
            let Resolved::BytesToBytes(codec) = registry::resolve(spec, Input::Bytes(&serialized), depth)? else {
                let reason = "it is given bytes instead of an array".to_owned();
                return Err(ChainError::Place { codec: spec.full_name(), reason });
            };
            let encoded = serialized.len.map(|len| longest(codec.as_ref(), len));
            bytes.push((codec.clone(), serialized.len));
            serialized = Serialized { items: codec.items(serialized.items.as_ref()), len: encoded };
        }
        Ok(Self { array, to_array, to_bytes, bytes, len: serialized.len })
    }

    /// The representation of its decoded chunks.
    pub fn array(&self) -> &Representation {
        &self.array
    }

    /// The bounds of an encoded chunk's size; `None` if elements of variable length leave it open. A larger value is no
    /// chunk of this array.
    pub fn encoded_len(&self) -> Option<EncodedLen> {
        self.len
    }

    /// The memory for decoding or encoding a chunk, at most and without the encoded bytes; `None` if elements of
    /// variable length leave it to the budget.
    pub fn working_len(&self) -> Option<u64> {
        let stages = self.bytes.iter().map(|(_, len)| len.map(EncodedLen::max));
        let len = stages.into_iter().try_fold(self.array.fixed_len()?, |sum, len| sum.checked_add(len?))?;
        let shard = self.to_bytes.as_sharding().map_or(0, Sharding::working_len);
        Some(len.saturating_add(shard))
    }

    /// The work of decoding a chunk of `len` bytes, at most, in steps. For elements of a fixed size `len` is ignored.
    pub fn decode_work(&self, len: u64) -> u64 {
        let len = self.array.fixed_len().unwrap_or(len);
        self.work(len, |cost| cost.decode, |sharding| sharding.decode_work(len))
    }

    /// The same to encode one.
    pub fn encode_work(&self, len: u64) -> u64 {
        let len = self.array.fixed_len().unwrap_or(len);
        self.work(len, |cost| cost.encode, |sharding| sharding.encode_work(len))
    }

    /// [`decode_work`](Self::decode_work) of `chunks` chunks that have `len` bytes together.
    pub(crate) fn decode_work_of_many(&self, chunks: u64, len: u64) -> u64 {
        self.decode_work(len / chunks.max(1)).saturating_mul(chunks)
    }

    /// [`encode_work`](Self::encode_work) of `chunks` chunks that have `len` bytes together.
    pub(crate) fn encode_work_of_many(&self, chunks: u64, len: u64) -> u64 {
        self.encode_work(len / chunks.max(1)).saturating_mul(chunks)
    }

    fn work(&self, len: u64, steps: impl Fn(Cost) -> u64, shard: impl Fn(&Sharding) -> u64) -> u64 {
        let costs =
            self.to_array.iter().map(|codec| codec.cost()).chain(self.bytes.iter().map(|(codec, _)| codec.cost()));
        let steps = costs.fold(steps(self.to_bytes.cost()), |sum, cost| sum.saturating_add(steps(cost)));
        let shard = self.to_bytes.as_sharding().map_or(0, shard);
        steps.saturating_mul(len).saturating_add(shard)
    }

    /// The parts of a chunk that can be read on their own.
    pub fn access(&self) -> Access<'_> {
        if !self.to_array.is_empty() || !self.bytes.is_empty() {
            return Access::Whole;
        }
        match self.to_bytes.as_sharding() {
            Some(sharding) => Access::Shard(sharding),
            None => self.to_bytes.stored_order().map_or(Access::Whole, Access::Elements),
        }
    }

    /// True if its chunks are shards, before or after other codecs.
    pub(crate) fn makes_shards(&self) -> bool {
        self.to_bytes.as_sharding().is_some()
    }

    /// Decodes a chunk. `budget` bounds what elements of variable length, and the bytes that they are made of, may take.
    pub fn decode(&self, encoded: Bytes, budget: u64) -> Result<Elements, CodecError> {
        let mut bytes = encoded;
        for (codec, len) in self.bytes.iter().rev() {
            bytes = codec.decode(bytes, len.map_or(budget, EncodedLen::max))?;
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
        Ok(Swap::new(self.array.data_type(), order).apply(stored))
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
fn push(
    codecs: &mut Vec<(Arc<dyn ArrayToArray>, Representation)>,
    given: Representation,
    codec: Arc<dyn ArrayToArray>,
    encoded: Representation,
) -> Result<Representation, ChainError> {
    let before = codecs.last().and_then(|(before, array)| Some((before.permutation()?, codec.permutation()?, array)));
    if let Some((first, second, array)) = before {
        let order = second.iter().filter_map(|&axis| first.get(axis).copied()).collect();
        let both = transposed(array, order)?;
        if let (Some((codec, encoded)), Some((_, array))) = (both, codecs.pop()) {
            return push(codecs, array, codec, encoded);
        }
    }
    if codec.is_identity() {
        return Ok(encoded);
    }
    codecs.push((codec, given));
    Ok(encoded)
}

/// The bounds of a codec's output, given those of its input.
fn longest(codec: &dyn BytesToBytes, decoded: EncodedLen) -> EncodedLen {
    match (decoded, codec.encoded_len(decoded.max())) {
        (EncodedLen::Exact(_), encoded) => encoded,
        (EncodedLen::AtMost(_), encoded) => EncodedLen::AtMost(encoded.max()),
    }
}
