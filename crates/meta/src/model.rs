//! The common model of arrays.

use crate::{
    Dialect,
    chunk_keys::{ChunkKeyDecoder, ChunkKeyEncoding},
    codecs::CodecSpec,
    data_type::{DataType, Number},
    extensions::{Extension, ExtensionEffect},
    grid::ChunkGrid,
    json::{Json, Kind},
};

/// The attribute in which xarray stores dimension names.
pub(crate) const XARRAY_NAMES: &str = "_ARRAY_DIMENSIONS";

/// An array of any dialect.
#[derive(Clone, Debug)]
pub struct ArrayModel {
    /// The dialect of its document.
    pub dialect: Dialect,
    /// The stored shape: at most [`MAX_RANK`](crate::limits::MAX_RANK) extents of at most
    /// [`MAX_EXTENT`](crate::limits::MAX_EXTENT).
    pub shape: Vec<u64>,
    /// The data type of the elements.
    pub data_type: DataType,
    /// The element that missing chunks consist of, as it is in memory.
    pub fill_value: Vec<u8>,
    /// The chunk grid, of the shape's rank. For a sharded array it is the grid of the shards.
    pub grid: ChunkGrid,
    /// The encoding of chunk keys.
    pub chunk_keys: ChunkKeyEncoding,
    /// The prefix of chunk keys, empty or ending in `/`. For v2 and v3 it is relative to the node's prefix, and so
    /// empty; for the draft it is relative to the prefix of the hierarchy (`data/root/foo/`).
    pub chunk_prefix: String,
    /// The codec chain, in the order of encoding.
    pub codecs: Vec<CodecSpec>,
    /// The names of the dimensions; `None` for unnamed ones.
    pub dimension_names: Vec<Option<String>>,
    /// The user's attributes.
    pub attributes: Json,
    /// The extensions (ZEP 10) in the document; each of them is supported or optional.
    pub extensions: Vec<Extension>,
    /// The start of the view that the array is, one index per dimension; all 0 without the extension `example.offset`.
    /// Selections, and every shape that clients see, are relative to it: [`view_shape`](Self::view_shape).
    pub view_offset: Vec<u64>,
    /// The document as read, including unknown members.
    pub document: Json,
    /// The times whose cells have the elements as bounds (CF's `bounds`), if the array has no `units` itself. They are
    /// in another document, so a parsed one has none.
    pub bounded_times: Option<BoundedTimes>,
}

/// The attributes of times that their bounds share: those without attributes of their own are decoded by these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundedTimes {
    /// `units`, such as `days since 1970-01-01`.
    pub units: String,
    /// `calendar`.
    pub calendar: Option<String>,
}

impl ArrayModel {
    /// The shape of the view: the stored elements from the [`view_offset`](Self::view_offset) on.
    pub fn view_shape(&self) -> Vec<u64> {
        self.shape.iter().zip(&self.view_offset).map(|(extent, origin)| extent.saturating_sub(*origin)).collect()
    }

    /// The decoder of the array's chunk keys.
    pub fn chunk_key_decoder(&self) -> ChunkKeyDecoder {
        let dimensions = self.grid.dimensions().iter().zip(&self.shape);
        let num_chunks = dimensions.map(|(grid, extent)| grid.num_chunks(*extent)).collect();
        ChunkKeyDecoder::new(self.chunk_keys, num_chunks)
    }

    /// True if every reader fills missing chunks with the fill value. With `null`, unwritten elements are undefined,
    /// and zarr-python 2.x returns uninitialized memory; with a number for elements of variable length it returns that
    /// number.
    pub fn fill_value_is_agreed(&self) -> bool {
        match self.document.get("fill_value").map(|fill_value| fill_value.kind()) {
            None | Some(Kind::Null) => false,
            Some(Kind::Number) => self.data_type.fixed_size().is_some(),
            Some(_) => true,
        }
    }

    /// True if all dimensions have names in xarray's attribute `_ARRAY_DIMENSIONS`, which is an empty list for no
    /// dimensions; only in v2 and the draft.
    pub fn has_xarray_names(&self) -> bool {
        let names = self.attributes.get(XARRAY_NAMES).filter(|names| names.kind() == Kind::Array);
        let is_complete = names.is_some_and(|names| !self.shape.is_empty() || names.items().next().is_none());
        self.dialect != Dialect::V3 && is_complete && self.dimension_names.iter().all(Option::is_some)
    }

    /// True if xarray takes elements equal to the fill value as missing: in v2 and the draft, for numbers and times with
    /// dimension names, if the fill value is neither `null` nor NaN or "not a time". Zero counts too.
    ///
    /// In v3 the attribute `_FillValue` says so instead. Booleans, complex numbers and texts are not masked.
    pub fn is_masked(&self) -> bool {
        let is_maskable = self.data_type.number().is_some_and(Number::is_real) || self.data_type.is_time();
        self.dialect != Dialect::V3
            && is_maskable
            && self.has_fill_value()
            && !self.data_type.is_missing(&self.fill_value)
            && self.has_xarray_names()
    }

    /// True unless the document's fill value is `null` or missing.
    pub(crate) fn has_fill_value(&self) -> bool {
        self.document.get("fill_value").is_some_and(|fill_value| !fill_value.is_null())
    }

    /// True if an extension requires that chunks of only fill values are not stored; otherwise the server decides.
    pub fn skips_empty_chunks(&self) -> bool {
        self.extensions.iter().any(|extension| extension.effect == ExtensionEffect::SkipEmptyChunks)
    }
}
