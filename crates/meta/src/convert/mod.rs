//! Conversion of nodes between dialects, with a list of what is lost.
//!
//! The chunks of an array have the same bytes in both dialects, unless they may be [rewritten](ChunkPolicy::Rewritten)
//! because one of them does not have such chunks. Differences of notation are not losses: order `F` and a
//! `transpose`, the byte order of a `dtype` and of the codec `bytes`, filters and compressor and a codec chain,
//! `numcodecs.*` names, xarray's attribute `_ARRAY_DIMENSIONS` and `dimension_names`, its attribute `_FillValue` in v3 and
//! the fill value of v2, the draft's storage transformer and `sharding_indexed`. Documents for v3 have the form that zarr-python 3 reads, documents for the draft the form
//! that zarr-python 2 wrote.
//!
//! A new quirk of a dialect belongs into the module that writes the dialect (`v2`, `v3`, `draft`); what it reads is in
//! `documents`.

mod array;
mod chain;
mod codec;
mod draft;
mod filter;
mod group;
mod mask;
mod outcome;
mod plain_chunks;
mod source;
#[cfg(test)]
mod tests;
mod v2;
mod v3;

pub use array::{array, depends_on_chunks};
pub use group::group;
pub use outcome::{ArrayContext, ChunkPolicy, Converted, Loss, StoredChunks, Unconvertible};
pub use plain_chunks::keeps_chunks;
