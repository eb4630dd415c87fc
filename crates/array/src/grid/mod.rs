//! Projections of selections onto chunk grids: which elements of which chunks go where in the output. Pure functions,
//! tested without a store.
//!
//! A selection is one [`DimIndexer`](dimension::DimIndexer) per dimension, a list of [points], or a stack of such
//! selections ([`ElementSelection`](projection::ElementSelection)). [Projecting](projection::ElementSelection::project)
//! it onto a grid yields the chunks that it touches, each with the elements within the chunk and their positions in the
//! output. The same projection serves an array and its chunks, a shard and its inner chunks, and an uncompressed chunk
//! and the ranges of bytes to fetch.
//!
//! An output too large to be assembled at once is first split into [slabs](slab). [Strided copies](strided) then move
//! the elements of a chunk into a slab, or out of it.

pub(crate) mod dimension;
pub(crate) mod points;
pub(crate) mod projection;
pub(crate) mod range;
pub(crate) mod slab;
pub(crate) mod strided;
#[cfg(test)]
mod tests;
