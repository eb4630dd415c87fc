//! The codecs: one module each, and the modules that several codecs share.
//!
//! The first line of a codec's module names the codec; its documentation has an example of its configuration. A new
//! codec is a new module with an entry in [`FACTORIES`], a chain in the fuzz target `decode`, and its name in
//! docs/reference/formats.md; tests fail while one of these is missing.

use crate::CodecFactory;

mod adler32;
mod astype;
mod bitround;
mod blosc;
mod bounded_output;
mod bytes;
mod bz2;
mod cast_value;
mod categorize;
mod checksum;
mod crc32;
mod crc32c;
mod decode_only;
mod deflate;
mod delta;
#[cfg(test)]
mod examples;
mod filter;
mod filter_dtype;
mod fixedscaleoffset;
mod fletcher32;
#[cfg(test)]
mod golden;
mod gzip;
mod jenkins_lookup3;
mod json2;
mod lz4;
mod lzma;
#[cfg(test)]
mod malformed_input;
mod mixed_endian;
mod numbers;
mod packbits_numcodecs;
mod packbits_v3;
mod pcodec;
mod python_json;
mod python_text;
mod quantize;
mod scale_offset;
pub(crate) mod sharding;
mod shuffle;
mod tiling;
pub(crate) mod transpose;
mod transpose_kernel;
mod vlen;
mod vlen_array;
mod vlen_bytes;
mod vlen_utf8;
mod zlib;
mod zstd;

/// The factories of every codec.
pub(crate) static FACTORIES: &[&[CodecFactory]] = &[
    adler32::FACTORIES,
    astype::FACTORIES,
    bitround::FACTORIES,
    blosc::FACTORIES,
    bytes::FACTORIES,
    bz2::FACTORIES,
    cast_value::FACTORIES,
    categorize::FACTORIES,
    crc32::FACTORIES,
    crc32c::FACTORIES,
    delta::FACTORIES,
    fixedscaleoffset::FACTORIES,
    fletcher32::FACTORIES,
    gzip::FACTORIES,
    jenkins_lookup3::FACTORIES,
    json2::FACTORIES,
    lz4::FACTORIES,
    lzma::FACTORIES,
    mixed_endian::FACTORIES,
    packbits_numcodecs::FACTORIES,
    packbits_v3::FACTORIES,
    pcodec::FACTORIES,
    quantize::FACTORIES,
    scale_offset::FACTORIES,
    sharding::FACTORIES,
    shuffle::FACTORIES,
    transpose::FACTORIES,
    vlen_array::FACTORIES,
    vlen_bytes::FACTORIES,
    vlen_utf8::FACTORIES,
    zlib::FACTORIES,
    zstd::FACTORIES,
];
