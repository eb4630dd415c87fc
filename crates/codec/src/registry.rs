//! Lookup of codecs by namespace and name.

use zarrd_meta::codecs::{CodecSpec, Namespace};

use crate::{
    ChainError,
    codecs::FACTORIES,
    factory::{Codec, CodecFactory, CodecInput, FactoryContext},
};

/// Codecs of numcodecs that are refused, with the reasons.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("base64", "its texts take a third more than the bytes, and no program writes them by default"),
    ("msgpack2", "its objects have no common type; rewrite them as `vlen-utf8` or `json2`"),
    ("pickle", "decoding runs code of the writer"),
    ("zfpy", "its format has no decoder that bounds its memory; rewrite the array with `pcodec` or `zstd`"),
];

/// The namespace and name of every codec that documents can name.
///
/// The table of docs/reference/formats.md, the fuzz targets and the test of the documented examples are checked against this list.
pub fn supported_codecs() -> impl Iterator<Item = (Namespace, &'static str)> {
    let documented = factories().filter(|factory| factory.namespace != Namespace::Model);
    documented.map(|factory| (factory.namespace, factory.name))
}

/// Creates a codec for its position in a chain.
pub(crate) fn create(spec: &CodecSpec, input: CodecInput<'_>, context: &FactoryContext) -> Result<Codec, ChainError> {
    let factory = factories().find(|factory| factory.namespace == spec.namespace && factory.name == spec.name);
    let factory = factory.ok_or_else(|| refusal(spec))?;
    (factory.create)(spec, input, context)
}

/// The error for a codec that has no factory.
fn refusal(spec: &CodecSpec) -> ChainError {
    let codec = spec.full_name();
    match UNSUPPORTED.iter().find(|(name, _)| *name == spec.name).filter(|_| spec.namespace == Namespace::Numcodecs) {
        Some((_, reason)) => ChainError::UnsupportedCodec { codec, reason },
        None => ChainError::UnknownCodec { codec },
    }
}

fn factories() -> impl Iterator<Item = &'static CodecFactory> {
    FACTORIES.iter().copied().flatten()
}
