//! What numcodecs' filters have in common: they calculate with the elements of an array, or with stored bytes as if they were one.
//!
//! In v3 a filter stands before the array becomes bytes, and is given elements as they are in memory. In v2 it stands behind, and is
//! given bytes in which the elements have the byte order that its own configuration says. One [`Kernel`] serves both.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use meta::{
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

    /// The size of the result of [`decode`](Self::decode) for these bytes, which are whole elements. By default the
    /// number of elements stays the same.
    fn decoded_size(&self, encoded: &[u8], [before, after]: [&FilterElements; 2]) -> Result<u64, CodecError> {
        Ok(before.size_of(after.num_elements(encoded.len() as u64)))
    }

    /// The size of the result of [`encode`](Self::encode) for `decoded` bytes.
    fn encoded_size(&self, decoded: u64, [before, after]: [&FilterElements; 2]) -> u64 {
        after.size_of(before.num_elements(decoded))
    }

    /// Undoes [`encode`](Self::encode).
    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError>;

    /// Encodes whole elements.
    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError>;

    /// The fill value of what an array is encoded as: the same value in another type, as zarr-python has it for numcodecs' filters, and not what the
    /// filter would make of it.
    fn encoded_fill_value(&self, array: &ChunkRepresentation, encoded: &DataType) -> Result<Bytes, CodecError> {
        Ok(cast_fill_value(array, encoded))
    }

    /// The shape of the encoded array.
    fn encoded_shape(&self, shape: &[u64]) -> Vec<u64> {
        shape.to_vec()
    }
}

/// The elements on one side of a filter.
#[derive(Clone, Debug)]
pub(super) struct FilterElements {
    data_type: DataType,
    order: StoredOrder,
    /// The size of an element, at least 1.
    size: u64,
}

/// A kernel at its place in a chain.
#[derive(Debug)]
struct Filter<K> {
    kernel: K,
    decoded: FilterElements,
    encoded: FilterElements,
}

impl FilterElements {
    /// Elements of a type in a byte order. Fails if they have no fixed size.
    pub(super) fn new(spec: &CodecSpec, data_type: DataType, order: StoredOrder) -> Result<Self, ChainError> {
        match data_type.fixed_size() {
            Some(size @ 1..) => Ok(Self { data_type, order, size: size as u64 }),
            _ => Err(invalid_configuration(spec, format!("cannot be used with elements of {data_type}"))),
        }
    }

    /// Elements of a `dtype`.
    pub(super) fn from_dtype(spec: &CodecSpec, dtype: Dtype) -> Result<Self, ChainError> {
        let data_type =
            dtype.data_type().ok_or_else(|| invalid_configuration(spec, "has a dtype that is not known"))?;
        Self::new(spec, data_type, dtype.order())
    }

    /// The number of elements in `len` bytes.
    fn num_elements(&self, size: u64) -> u64 {
        size / self.size
    }

    /// The size of `elements` elements in bytes.
    pub(super) fn size_of(&self, num_elements: u64) -> u64 {
        num_elements.saturating_mul(self.size)
    }

    /// The type and byte order of the items for the codecs that follow.
    pub(super) fn stored_elements(&self) -> (DataType, StoredOrder) {
        (self.data_type.clone(), self.order.clone())
    }

    /// Between how elements are stored and how they are in memory.
    pub(super) fn swap_bytes(&self, bytes: Bytes) -> Bytes {
        ByteSwap::new(&self.data_type, &self.order).apply(bytes)
    }

    fn check_complete<K: FilterKernel>(&self, bytes: &Bytes) -> Result<(), CodecError> {
        match bytes.len() as u64 % self.size {
            0 => Ok(()),
            _ => Err(CodecError::Malformed { codec: K::NAME, reason: "the bytes are no whole number of elements" }),
        }
    }
}

/// The `dtype` that a filter's configuration gives, or that of what it is given.
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
        // numcodecs has no default for bytes.
        CodecInput::Bytes(_) => None,
    };
    number.map(Dtype::little).ok_or_else(|| invalid_configuration(spec, "needs a dtype"))
}

/// Puts a kernel at its place.
pub(super) fn create<K: FilterKernel>(
    spec: &CodecSpec,
    input: CodecInput<'_>,
    kernel: K,
    [decoded, encoded]: [FilterElements; 2],
) -> Result<Codec, ChainError> {
    let CodecInput::Array(array) = input else {
        return Ok(Codec::BytesToBytes(Arc::new(Filter { kernel, decoded, encoded })));
    };
    // As NumPy's view, which takes the bytes of any elements of the same size.
    if array.data_type().fixed_size().map(|size| size as u64) != Some(decoded.size) {
        let reason = format!("it decodes to {}, and the array has {}", decoded.data_type, array.data_type());
        return Err(ChainError::InvalidPosition { codec: spec.full_name(), reason });
    }
    let data_type = match decoded.data_type == encoded.data_type {
        true => array.data_type().clone(),
        false => encoded.data_type.clone(),
    };
    let fill = kernel
        .encoded_fill_value(array, &data_type)
        .map_err(|error| invalid_configuration(spec, format!("cannot be used with the fill value: {error}")))?;
    let encoded_array = ChunkRepresentation::new(data_type, kernel.encoded_shape(array.shape()), fill)?;
    Ok(Codec::ArrayToArray(Arc::new(Filter { kernel, decoded, encoded }), encoded_array))
}

/// The fill value of an array in another type; zero if it cannot be converted.
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
            Err(CodecError::Malformed { codec: K::NAME, reason: "the elements are of variable length" })
        }
    }
}
