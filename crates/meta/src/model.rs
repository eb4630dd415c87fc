//! The one model of an array.

use crate::{
    Dialect,
    chunk_keys::{ChunkKeyDecoder, ChunkKeyEncoding},
    codecs::CodecSpec,
    data_type::DataType,
    extensions::{Extension, ExtensionEffect},
    grid::ChunkGrid,
    json::{Json, Kind},
};

/// An array, whatever wrote it.
#[derive(Clone, Debug)]
pub struct ArrayModel {
    /// The dialect of its document.
    pub dialect: Dialect,
    /// The extent of each dimension as it is stored; at most [`MAX_RANK`](crate::limits::MAX_RANK) of at most [`MAX_EXTENT`](crate::limits::MAX_EXTENT).
    pub shape: Vec<u64>,
    /// The type of the elements.
    pub data_type: DataType,
    /// The element that missing chunks are full of, as it is in memory.
    pub fill_value: Vec<u8>,
    /// Its chunk grid, of the shape's rank. Of a sharded array, that of the shards.
    pub grid: ChunkGrid,
    /// The encoding of chunk keys.
    pub chunk_keys: ChunkKeyEncoding,
    /// The keys of chunks begin with this, from the root of the hierarchy's store prefix: empty or with a `/` at its end. For v2 and v3 it is
    /// relative to the node's own prefix (and so empty); for the draft, to the prefix of the hierarchy's root (`data/root/foo/`).
    pub chunk_prefix: String,
    /// The chain, in the order of encoding.
    pub codecs: Vec<CodecSpec>,
    /// The names of the dimensions, as many as the shape has; `None` for those without.
    pub dimension_names: Vec<Option<String>>,
    /// The user's attributes.
    pub attributes: Json,
    /// The extensions (ZEP 10) that the document names, all of them known or not to be understood.
    pub extensions: Vec<Extension>,
    /// The start of the view that the array is, one index per dimension: all 0 unless it has the extension
    /// `example.offset`. Selections, and every shape that clients see, are those of the view:
    /// [`view_shape`](Self::view_shape).
    pub view_offset: Vec<u64>,
    /// The document as it was read, with whatever else it has.
    pub document: Json,
}

impl ArrayModel {
    /// The shape of the view: the stored elements from the [origin](Self::origin) on.
    pub fn view_shape(&self) -> Vec<u64> {
        self.shape.iter().zip(&self.view_offset).map(|(extent, origin)| extent.saturating_sub(*origin)).collect()
    }

    /// The decoder of the array's chunk keys.
    pub fn chunk_key_decoder(&self) -> ChunkKeyDecoder {
        let dimensions = self.grid.dimensions().iter().zip(&self.shape);
        let num_chunks = dimensions.map(|(grid, extent)| grid.num_chunks(*extent)).collect();
        ChunkKeyDecoder::new(self.chunk_keys, num_chunks)
    }

    /// True if every reader takes missing chunks for full of the fill value. With `null`, elements that were never
    /// written are undefined, and zarr-python 2.x returns uninitialised memory; with the number that it writes for
    /// elements of variable length it returns that number.
    pub fn fill_value_is_agreed(&self) -> bool {
        match self.document.get("fill_value").map(|fill_value| fill_value.kind()) {
            None | Some(Kind::Null) => false,
            Some(Kind::Number) => self.data_type.fixed_size().is_some(),
            Some(_) => true,
        }
    }

    /// True if an extension says that chunks which are full of the fill value are not stored; where none does, that is for the server to decide.
    pub fn skips_empty_chunks(&self) -> bool {
        self.extensions.iter().any(|extension| extension.effect == ExtensionEffect::SkipEmptyChunks)
    }
}
