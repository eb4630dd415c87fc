//! From one dialect's documents to another's, with everything that is lost on the way.
//!
//! The chunks of an array have the same bytes in both dialects. What a dialect only writes differently is no loss: order `F` and a `transpose`, the byte order
//! of a `dtype` and that of the codec `bytes`, filters and compressor and a chain of codecs, `numcodecs.*` names, xarray's attribute
//! `_ARRAY_DIMENSIONS` and `dimension_names`, the draft's storage transformer and `sharding_indexed`. What is written for v3 is what
//! zarr-python 3 reads, and for the draft, what zarr-python 2 wrote.

mod array;
mod chain;
mod codec;
mod draft;
mod filter;
mod group;
mod outcome;
mod source;
#[cfg(test)]
mod tests;
mod v2;
mod v3;

pub use array::array;
pub use group::group;
pub use outcome::{ChunkKeyPolicy, Converted, Loss, Unconvertible};
