//! The filters of numcodecs, which compute with elements.
//!
//! In v3 a filter precedes the array-to-bytes codec and gets elements in memory order. In v2 and the draft it follows
//! that codec and gets bytes whose elements have the byte order of the filter's own configuration. One [`FilterKernel`]
//! serves both.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use zarrd_meta::{
    codecs::CodecSpec,
    data_type::{DataType, StoredOrder},
};

use super::numbers::{Dtype, cast};
use crate::{
    ArrayToArray, ByteSwap, BytesToBytes, ChainError, ChunkRepresentation, Codec, CodecError, CodecInput, Cost,
    Elements, EncodedSizeBound, factory::invalid_configuration,
};

/// The computation of a filter on little-endian elements.
pub(super) trait FilterKernel: fmt::Debug + Send + Sync + 'static {
    /// The codec's name.
    const NAME: &'static str;

    /// The size of the result of [`decode`](Self::decode) for complete elements, in bytes. By default the number of
    /// elements does not change.
    fn decoded_size(&self, encoded: &[u8], [before, after]: [&FilterElements; 2]) -> Result<u64, CodecError> {
        Ok(before.size_of(after.num_elements(encoded.len() as u64)))
    }

    /// The size of the result of [`encode`](Self::encode) for `decoded` bytes.
    fn encoded_size(&self, decoded: u64, [before, after]: [&FilterElements; 2]) -> u64 {
        after.size_of(before.num_elements(decoded))
    }

    /// Inverts [`encode`](Self::encode).
    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError>;

    /// Encodes complete elements.
    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError>;

    /// The fill value of the encoded array. As in zarr-python it is the same value in another type, not the filter's
    /// result.
    fn encoded_fill_value(&self, array: &ChunkRepresentation, encoded: &DataType) -> Result<Bytes, CodecError> {
        Ok(cast_fill_value(array, encoded))
    }

    /// The shape of the encoded array.
    fn encoded_shape(&self, shape: &[u64]) -> Vec<u64> {
        shape.to_vec()
    }
}

/// The elements on one side of a filter: decoded or encoded.
#[derive(Clone, Debug)]
pub(super) struct FilterElements {
    data_type: DataType,
    order: StoredOrder,
    /// The size of an element in bytes, at least 1.
    size: u64,
}

/// A kernel at its position in a chain.
#[derive(Debug)]
struct Filter<K> {
    kernel: K,
    decoded: FilterElements,
    encoded: FilterElements,
}

impl FilterElements {
    /// Elements of a data type in a byte order. Fails for elements of variable length or without bytes.
    pub(super) fn new(spec: &CodecSpec, data_type: DataType, order: StoredOrder) -> Result<Self, ChainError> {
        match data_type.fixed_size() {
            Some(size @ 1..) => Ok(Self { data_type, order, size: size as u64 }),
            _ => Err(invalid_configuration(spec, format!("does not support elements of {data_type}"))),
        }
    }

    /// Elements of a `dtype`.
    pub(super) fn from_dtype(spec: &CodecSpec, dtype: Dtype) -> Result<Self, ChainError> {
        let data_type = dtype.data_type().ok_or_else(|| invalid_configuration(spec, "has an unknown dtype"))?;
        Self::new(spec, data_type, dtype.order())
    }

    /// The number of elements in `size` bytes.
    fn num_elements(&self, size: u64) -> u64 {
        size / self.size
    }

    /// The size of elements in bytes.
    pub(super) fn size_of(&self, num_elements: u64) -> u64 {
        num_elements.saturating_mul(self.size)
    }

    /// The data type and byte order, for the codecs that follow.
    pub(super) fn stored_elements(&self) -> (DataType, StoredOrder) {
        (self.data_type.clone(), self.order.clone())
    }

    /// Converts between the stored byte order and memory.
    pub(super) fn swap_bytes(&self, bytes: Bytes) -> Bytes {
        ByteSwap::new(&self.data_type, &self.order).apply(bytes)
    }

    fn check_complete<K: FilterKernel>(&self, bytes: &Bytes) -> Result<(), CodecError> {
        match bytes.len() as u64 % self.size {
            0 => Ok(()),
            _ => Err(CodecError::Malformed { codec: K::NAME, reason: "the last element is incomplete" }),
        }
    }
}

/// The configured `dtype`, or by default the data type of an input array.
pub(super) fn configured_or_input_dtype(
    spec: &CodecSpec,
    configured: Option<Dtype>,
    input: CodecInput<'_>,
) -> Result<Dtype, ChainError> {
    if let Some(dtype) = configured {
        return Ok(dtype);
    }
    let number = match input {
        CodecInput::Array(array) => array.data_type().number(),
        // As in numcodecs, there is no default for bytes.
        CodecInput::Bytes(_) => None,
    };
    number.map(Dtype::little).ok_or_else(|| invalid_configuration(spec, "requires a dtype"))
}

/// Creates the filter for its position in a chain.
pub(super) fn create<K: FilterKernel>(
    spec: &CodecSpec,
    input: CodecInput<'_>,
    kernel: K,
    [decoded, encoded]: [FilterElements; 2],
) -> Result<Codec, ChainError> {
    let CodecInput::Array(array) = input else {
        return Ok(Codec::BytesToBytes(Arc::new(Filter { kernel, decoded, encoded })));
    };
    // Like NumPy's `view`, which reinterprets the bytes of elements of the same size.
    if array.data_type().fixed_size().map(|size| size as u64) != Some(decoded.size) {
        let reason = format!("it decodes to {}, but the array has {}", decoded.data_type, array.data_type());
        return Err(ChainError::InvalidPosition { codec: spec.full_name(), reason });
    }
    let data_type = match decoded.data_type == encoded.data_type {
        true => array.data_type().clone(),
        false => encoded.data_type.clone(),
    };
    let fill = kernel
        .encoded_fill_value(array, &data_type)
        .map_err(|error| invalid_configuration(spec, format!("does not support the fill value: {error}")))?;
    let encoded_array = ChunkRepresentation::new(data_type, kernel.encoded_shape(array.shape()), fill)?;
    Ok(Codec::ArrayToArray(Arc::new(Filter { kernel, decoded, encoded }), encoded_array))
}

/// The array's fill value cast to another type; zero if it cannot be cast.
fn cast_fill_value(array: &ChunkRepresentation, encoded: &DataType) -> Bytes {
    if encoded == array.data_type() {
        return array.fill_value().clone();
    }
    match array.data_type().number().zip(encoded.number()) {
        Some((from, to)) => cast(array.fill_value(), from, to).into(),
        None => encoded.zero().into(),
    }
}

impl<K: FilterKernel> ArrayToArray for Filter<K> {
    fn cost(&self) -> Cost {
        Cost::symmetric(4)
    }

    fn decode(&self, encoded: Elements) -> Result<Elements, CodecError> {
        self.kernel.decode(fixed_bytes::<K>(encoded)?).map(Elements::Fixed)
    }

    fn encode(&self, decoded: Elements) -> Result<Elements, CodecError> {
        self.kernel.encode(fixed_bytes::<K>(decoded)?).map(Elements::Fixed)
    }
}

impl<K: FilterKernel> BytesToBytes for Filter<K> {
    fn decode(&self, encoded: Bytes, limit: u64) -> Result<Bytes, CodecError> {
        self.encoded.check_complete::<K>(&encoded)?;
        if self.kernel.decoded_size(&encoded, [&self.decoded, &self.encoded])? > limit {
            return Err(CodecError::OutputTooLong { codec: K::NAME, limit });
        }
        Ok(self.decoded.swap_bytes(self.kernel.decode(self.encoded.swap_bytes(encoded))?))
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        self.decoded.check_complete::<K>(&decoded)?;
        Ok(self.encoded.swap_bytes(self.kernel.encode(self.decoded.swap_bytes(decoded))?))
    }

    fn encoded_size(&self, decoded: u64) -> EncodedSizeBound {
        EncodedSizeBound::Exact(self.kernel.encoded_size(decoded, [&self.decoded, &self.encoded]))
    }

    fn cost(&self) -> Cost {
        Cost::symmetric(4)
    }

    fn stored_elements(&self, _before: Option<&(DataType, StoredOrder)>) -> Option<(DataType, StoredOrder)> {
        Some(self.encoded.stored_elements())
    }
}

fn fixed_bytes<K: FilterKernel>(elements: Elements) -> Result<Bytes, CodecError> {
    match elements {
        Elements::Fixed(bytes) => Ok(bytes),
        Elements::Variable(_) => {
            Err(CodecError::Malformed { codec: K::NAME, reason: "the elements have variable length" })
        }
    }
}
