//! Lookup of codecs by namespace and name.

use zarrd_meta::codecs::{CodecSpec, Namespace};

use crate::{
    ChainError,
    codecs::FACTORIES,
    factory::{Codec, CodecFactory, CodecInput, FactoryContext},
};

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
    let factory = factory.ok_or_else(|| ChainError::UnknownCodec { codec: spec.full_name() })?;
    (factory.create)(spec, input, context)
}

fn factories() -> impl Iterator<Item = &'static CodecFactory> {
    FACTORIES.iter().copied().flatten()
}
