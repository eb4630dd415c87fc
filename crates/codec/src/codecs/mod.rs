//! One codec each.

mod bounded;
pub(crate) mod bytes;
pub(crate) mod bz2;
pub(crate) mod gzip;
mod inflate;
pub(crate) mod lz4;
pub(crate) mod mixed_endian;
mod permute;
pub(crate) mod sharding;
pub(crate) mod shuffle;
mod tiles;
pub(crate) mod transpose;
pub(crate) mod zlib;
pub(crate) mod zstd;
