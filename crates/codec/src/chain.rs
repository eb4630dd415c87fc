//! Chains of codecs.

use std::sync::Arc;

use bytes::Bytes;
use zarrd_meta::data_type::StoredOrder;

use crate::{
    ArrayToArray, ArrayToBytes, ByteSwap, BytesToBytes, ChunkRepresentation, CodecError, Cost, Elements,
    EncodedSizeBound,
};

/// The codecs of an array, created for chunks of one representation.
#[derive(Clone, Debug)]
pub struct CodecChain {
    pub(crate) representation: ChunkRepresentation,
    pub(crate) array_to_array: Vec<Arc<dyn ArrayToArray>>,
    /// The largest size of a chunk between two array-to-array codecs, or behind the last one, in bytes; 0 if elements of
    /// variable length leave it open.
    pub(crate) largest_array: u64,
    pub(crate) array_to_bytes: Arc<dyn ArrayToBytes>,
    /// Each codec with the bound of its input's size.
    pub(crate) bytes_to_bytes: Vec<(Arc<dyn BytesToBytes>, Option<EncodedSizeBound>)>,
    pub(crate) encoded_size: Option<EncodedSizeBound>,
}

impl CodecChain {
    /// The representation of decoded chunks.
    pub fn representation(&self) -> &ChunkRepresentation {
        &self.representation
    }

    /// The bound of an encoded chunk's size; `None` if elements of variable length leave it open. A larger value is not
    /// a chunk of this array.
    pub fn encoded_size(&self) -> Option<EncodedSizeBound> {
        self.encoded_size
    }

    /// The maximum memory for decoding or encoding a chunk in bytes, without the encoded chunk; `None` if elements of
    /// variable length leave it to the budget.
    pub fn working_memory(&self) -> Option<u64> {
        let stages = self.bytes_to_bytes.iter().map(|(_, size)| size.map(EncodedSizeBound::max));
        let sum = |sum: u64, size: Option<u64>| sum.checked_add(size?);
        // An array-to-array codec may store wider elements than it decodes.
        let array = self.representation.fixed_size()?.max(self.largest_array);
        let size = stages.into_iter().try_fold(array, sum)?;
        Some(size.saturating_add(self.array_to_bytes.working_memory()))
    }

    /// The maximum memory of an encoder while it encodes a chunk, in addition to [`working_memory`](Self::working_memory),
    /// in bytes: the codecs run one after the other. Chunks with elements of variable length are taken for small.
    pub fn encoder_memory(&self) -> u64 {
        let inputs =
            self.bytes_to_bytes.iter().map(|(codec, size)| codec.encoder_memory(size.map_or(0, EncodedSizeBound::max)));
        inputs.fold(self.array_to_bytes.inner_encoder_memory(), u64::max)
    }

    /// The maximum work of decoding a chunk of `size` bytes, in steps. `size` is ignored for elements of a fixed size.
    pub fn decode_work(&self, size: u64) -> u64 {
        let size = self.representation.fixed_size().unwrap_or(size);
        self.work(size, |cost| (cost.decode, cost.decode_start))
            .saturating_add(self.array_to_bytes.inner_decode_work(size))
    }

    /// The maximum work of encoding a chunk of `size` bytes, in steps. `size` is ignored for elements of a fixed size.
    pub fn encode_work(&self, size: u64) -> u64 {
        let size = self.representation.fixed_size().unwrap_or(size);
        self.work(size, |cost| (cost.encode, cost.encode_start))
            .saturating_add(self.array_to_bytes.inner_encode_work(size))
    }

    /// [`decode_work`](Self::decode_work) of `chunks` chunks with `size` bytes in total.
    pub(crate) fn decode_work_of_chunks(&self, chunks: u64, size: u64) -> u64 {
        self.decode_work(size / chunks.max(1)).saturating_mul(chunks)
    }

    /// [`encode_work`](Self::encode_work) of `chunks` chunks with `size` bytes in total.
    pub(crate) fn encode_work_of_chunks(&self, chunks: u64, size: u64) -> u64 {
        self.encode_work(size / chunks.max(1)).saturating_mul(chunks)
    }

    /// The steps of all codecs for a chunk, given those of each for a byte and those to begin.
    fn work(&self, size: u64, steps: impl Fn(Cost) -> (u64, u64)) -> u64 {
        let of = |cost| {
            let (per_byte, start) = steps(cost);
            per_byte.saturating_mul(size).saturating_add(start)
        };
        let array_to_array = self.array_to_array.iter().map(|codec| codec.cost());
        let costs = array_to_array.chain(self.bytes_to_bytes.iter().map(|(codec, _)| codec.cost()));
        costs.map(of).fold(of(self.array_to_bytes.cost()), u64::saturating_add)
    }

    /// The array-to-bytes codec, if the chain has no other codecs.
    pub(crate) fn only_array_to_bytes(&self) -> Option<&dyn ArrayToBytes> {
        let is_only = self.array_to_array.is_empty() && self.bytes_to_bytes.is_empty();
        is_only.then_some(self.array_to_bytes.as_ref())
    }

    /// Decodes a chunk. `budget` limits the memory of elements of variable length and of their encoded forms, in bytes.
    pub fn decode(&self, encoded: Bytes, budget: u64) -> Result<Elements, CodecError> {
        let mut bytes = encoded;
        for (codec, size) in self.bytes_to_bytes.iter().rev() {
            bytes = codec.decode(bytes, size.map_or(budget, EncodedSizeBound::max))?;
        }
        let elements = self.array_to_bytes.decode(bytes, budget)?;
        self.array_to_array.iter().rev().try_fold(elements, |elements, codec| codec.decode(elements))
    }

    /// Decodes consecutive elements of a chunk whose elements are [accessible](crate::PartialAccess::Elements) without
    /// the rest of it. `stored` has any number of complete elements.
    pub fn decode_elements(&self, stored: Bytes) -> Result<Bytes, CodecError> {
        let Some(order) = self.stored_order() else {
            return Err(CodecError::Malformed { codec: "bytes", reason: "the elements are not stored consecutively" });
        };
        Ok(ByteSwap::new(self.representation.data_type(), order).apply(stored))
    }

    fn stored_order(&self) -> Option<&StoredOrder> {
        self.array_to_bytes.stored_order()
    }

    /// Encodes a chunk.
    pub fn encode(&self, elements: Elements) -> Result<Bytes, CodecError> {
        let elements = self.array_to_array.iter().try_fold(elements, |elements, codec| codec.encode(elements))?;
        let bytes = self.array_to_bytes.encode(elements)?;
        self.bytes_to_bytes.iter().try_fold(bytes, |bytes, (codec, _)| codec.encode(bytes))
    }
}
