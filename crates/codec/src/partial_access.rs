//! Access to parts of an encoded chunk.

use zarrd_meta::data_type::StoredOrder;

use crate::{CodecChain, ShardingCodec};

/// The parts of an encoded chunk that can be read without the rest of it.
#[derive(Clone, Copy, Debug)]
pub enum PartialAccess<'a> {
    /// None: the full chunk has to be decoded.
    Full,
    /// Elements: they are stored consecutively in C order, in this byte order.
    Elements(&'a StoredOrder),
    /// Inner chunks: the chunk is a shard.
    Shard(&'a ShardingCodec),
}

impl CodecChain {
    /// The parts of an encoded chunk that can be read without the rest of it.
    pub fn partial_access(&self) -> PartialAccess<'_> {
        let Some(codec) = self.only_array_to_bytes() else { return PartialAccess::Full };
        if let Some(sharding) = ShardingCodec::downcast(codec) {
            return PartialAccess::Shard(sharding);
        }
        codec.stored_order().map_or(PartialAccess::Full, PartialAccess::Elements)
    }
}
