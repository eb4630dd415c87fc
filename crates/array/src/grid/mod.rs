//! Plans: which elements of which chunks go where in the answer. Pure, and tested without any store.
//!
//! Indices along one axis ([`AxisIndices`]) are cut by a grid into pieces, each with its indices within the piece and the places in the answer
//! where they go ([`cut`]). The same cut serves an array and its chunks, a shard and its inner chunks, and an uncompressed chunk and the parts
//! of it that lie together. A selection larger than may be assembled at once is cut into [slabs](slabs) first. Where elements are on both sides is said by [`runs`].

pub(crate) mod dimension;
pub(crate) mod projection;
pub(crate) mod slab;
pub(crate) mod strided;
#[cfg(test)]
mod tests;
