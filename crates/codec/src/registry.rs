//! The codecs that there are.

use meta::codecs::CodecSpec;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{ChainError, Codec, CodecFactory, CodecInput, codecs};

/// Every codec, file by file.
static PLUGINS: &[&[CodecFactory]] = &[
    codecs::adler32::PLUGINS,
    codecs::astype::PLUGINS,
    codecs::bit_packing::PLUGINS,
    codecs::bitround::PLUGINS,
    codecs::blosc::PLUGINS,
    codecs::bytes::PLUGINS,
    codecs::bz2::PLUGINS,
    codecs::categorize::PLUGINS,
    codecs::crc32::PLUGINS,
    codecs::crc32c::PLUGINS,
    codecs::delta::PLUGINS,
    codecs::fixedscaleoffset::PLUGINS,
    codecs::fletcher32::PLUGINS,
    codecs::gzip::PLUGINS,
    codecs::jenkins_lookup3::PLUGINS,
    codecs::json2::PLUGINS,
    codecs::lz4::PLUGINS,
    codecs::lzma::PLUGINS,
    codecs::mixed_endian::PLUGINS,
    codecs::packbits::PLUGINS,
    codecs::quantize::PLUGINS,
    codecs::scale_offset::PLUGINS,
    codecs::sharding::PLUGINS,
    codecs::shuffle::PLUGINS,
    codecs::transpose::PLUGINS,
    codecs::vlen_array::PLUGINS,
    codecs::vlen_bytes::PLUGINS,
    codecs::vlen_utf8::PLUGINS,
    codecs::zlib::PLUGINS,
    codecs::zstd::PLUGINS,
];

/// Makes a codec for its place in a chain.
pub(crate) fn create(spec: &CodecSpec, input: CodecInput<'_>, depth: usize) -> Result<Codec, ChainError> {
    let named = |plugin: &&CodecFactory| plugin.namespace == spec.namespace && plugin.name == spec.name;
    let plugin = PLUGINS.iter().copied().flatten().find(named);
    let plugin = plugin.ok_or_else(|| ChainError::UnknownCodec { codec: spec.full_name() })?;
    (plugin.create)(spec, input, depth)
}

/// Reads a configuration into the type that a codec has for it.
pub(crate) fn parse_configuration<T: DeserializeOwned>(spec: &CodecSpec) -> Result<T, ChainError> {
    serde_json::from_value(Value::Object(spec.configuration.clone()))
        .map_err(|source| ChainError::MalformedConfiguration { codec: spec.full_name(), source })
}

/// The codec is configured wrongly: `reason` continues "the codec x".
pub(crate) fn invalid_configuration(spec: &CodecSpec, reason: impl Into<String>) -> ChainError {
    ChainError::InvalidConfiguration { codec: spec.full_name(), reason: reason.into() }
}
