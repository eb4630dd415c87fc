//! Properties of a codec's input and output.

use bytes::Bytes;
use zarrd_meta::{
    data_type::{DataType, StoredOrder},
    limits::MAX_CHUNK_SIZE,
};

use crate::ChainError;

/// The data type, shape and fill value of a decoded chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkRepresentation {
    data_type: DataType,
    shape: Vec<u64>,
    fill_value: Bytes,
    num_elements: u64,
}

/// The bound of an encoded size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodedSizeBound {
    /// The exact size, independent of the content.
    Exact(u64),
    /// The maximum size.
    AtMost(u64),
}

/// The representation of the bytes between bytes-to-bytes codecs.
#[derive(Clone, Debug, PartialEq)]
pub struct BytesRepresentation {
    /// The data type and byte order, if the bytes are consecutive elements. The filters of numcodecs compute with them,
    /// and compressors shuffle by their size.
    pub stored_elements: Option<(DataType, StoredOrder)>,
    /// The bound of the size; `None` if elements of variable length leave it open.
    pub size: Option<EncodedSizeBound>,
}

impl ChunkRepresentation {
    /// Creates a representation. Fails if a chunk would have more than [`MAX_CHUNK_SIZE`] bytes or elements.
    pub fn new(data_type: DataType, shape: Vec<u64>, fill_value: impl Into<Bytes>) -> Result<Self, ChainError> {
        let fill_value = fill_value.into();
        let elements = match shape.contains(&0) {
            true => Some(0),
            false => shape.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent)),
        };
        let size = data_type.fixed_size().unwrap_or(1).max(1) as u64;
        let fits = |elements: &u64| elements.checked_mul(size).is_some_and(|bytes| bytes <= MAX_CHUNK_SIZE);
        let elements = elements.filter(fits).ok_or(ChainError::ChunkTooLarge)?;
        Ok(Self { data_type, shape, fill_value, num_elements: elements })
    }

    /// The data type of the elements.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// The number of elements along each dimension.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The element that missing chunks consist of, as it is in memory.
    pub fn fill_value(&self) -> &Bytes {
        &self.fill_value
    }

    /// The number of elements.
    pub fn num_elements(&self) -> u64 {
        self.num_elements
    }

    /// The size of a chunk in bytes; `None` for elements of variable length.
    pub fn fixed_size(&self) -> Option<u64> {
        // Cannot overflow: the constructor checked the product.
        Some(self.num_elements.saturating_mul(self.data_type.fixed_size()? as u64))
    }
}

impl EncodedSizeBound {
    /// The maximum size.
    pub fn max(self) -> u64 {
        match self {
            Self::Exact(len) | Self::AtMost(len) => len,
        }
    }

    /// The size, if it is exact.
    pub fn exact(self) -> Option<u64> {
        match self {
            Self::Exact(len) => Some(len),
            Self::AtMost(_) => None,
        }
    }
}
