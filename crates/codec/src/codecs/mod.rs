//! One codec each.

pub(crate) mod adler32;
pub(crate) mod astype;
pub(crate) mod bit_packing;
pub(crate) mod bitround;
pub(crate) mod blosc;
mod bounded;
pub(crate) mod bytes;
pub(crate) mod bz2;
pub(crate) mod categorize;
mod checksum;
pub(crate) mod crc32;
pub(crate) mod crc32c;
pub(crate) mod delta;
#[cfg(test)]
mod examples;
mod filter;
pub(crate) mod fixedscaleoffset;
pub(crate) mod fletcher32;
pub(crate) mod gzip;
#[cfg(test)]
mod hostile;
mod inflate;
pub(crate) mod jenkins_lookup3;
pub(crate) mod json2;
#[cfg(test)]
mod known;
pub(crate) mod lz4;
pub(crate) mod lzma;
pub(crate) mod mixed_endian;
mod numbers;
pub(crate) mod packbits;
mod permute;
mod python_json;
mod python_text;
pub(crate) mod quantize;
pub(crate) mod scale_offset;
pub(crate) mod sharding;
pub(crate) mod shuffle;
mod tiles;
mod times;
pub(crate) mod transpose;
mod vlen;
pub(crate) mod vlen_array;
pub(crate) mod vlen_bytes;
pub(crate) mod vlen_utf8;
pub(crate) mod zlib;
pub(crate) mod zstd;
