//! Creation of a chain's codecs.

use std::sync::Arc;

use zarrd_meta::{codecs::CodecSpec, limits::MAX_CODECS};

use crate::{
    ArrayToArray, BytesRepresentation, BytesToBytes, ChainError, ChunkRepresentation, CodecChain, EncodedSizeBound,
    codecs::transpose::transpose_codec,
    factory::{Codec, CodecInput, FactoryContext},
    registry,
};

impl CodecChain {
    /// Creates the codecs of an array for chunks of one representation.
    ///
    /// # Errors
    ///
    /// [`ChainError`] if a codec is unknown, invalidly configured or at an invalid position, or if a limit is exceeded.
    pub fn new(specs: &[CodecSpec], representation: ChunkRepresentation) -> Result<Self, ChainError> {
        build(specs, representation, &top_level())
    }
}

/// The context of chains that are in no shard.
pub(crate) fn top_level() -> FactoryContext {
    FactoryContext::new(build)
}

fn build(
    specs: &[CodecSpec],
    representation: ChunkRepresentation,
    context: &FactoryContext,
) -> Result<CodecChain, ChainError> {
    if specs.len() > MAX_CODECS {
        return Err(ChainError::TooManyCodecs { found: specs.len() });
    }
    let mut specs = specs.iter();
    let mut current = representation.clone();
    let mut array_to_array = Vec::new();
    let array_to_bytes = loop {
        let spec = specs.next().ok_or(ChainError::NoArrayToBytes)?;
        match registry::create(spec, CodecInput::Array(&current), context)? {
            Codec::ArrayToArray(codec, encoded) => current = push(&mut array_to_array, current, codec, encoded)?,
            Codec::ArrayToBytes(codec) => break codec,
            Codec::BytesToBytes(_) => return Err(ChainError::NoArrayToBytes),
        }
    };
    let decoded = array_to_array.iter().map(|(_, decoded)| decoded);
    let largest_array = decoded.chain([&current]).filter_map(ChunkRepresentation::fixed_size).max().unwrap_or(0);
    let array_to_array = array_to_array.into_iter().map(|(codec, _)| codec).collect();
    let mut bytes =
        BytesRepresentation { stored_elements: array_to_bytes.stored_elements(), size: array_to_bytes.encoded_size() };
    let mut bytes_to_bytes = Vec::new();
    for spec in specs {
        let Codec::BytesToBytes(codec) = registry::create(spec, CodecInput::Bytes(&bytes), context)? else {
            let reason = "its input is bytes, not an array".to_owned();
            return Err(ChainError::InvalidPosition { codec: spec.full_name(), reason });
        };
        let size = bytes.size.map(|size| encoded_size(codec.as_ref(), size));
        bytes_to_bytes.push((codec.clone(), bytes.size));
        bytes = BytesRepresentation { stored_elements: codec.stored_elements(bytes.stored_elements.as_ref()), size };
    }
    let encoded_size = bytes.size;
    Ok(CodecChain { representation, array_to_array, largest_array, array_to_bytes, bytes_to_bytes, encoded_size })
}

/// Appends an array-to-array codec to those before it, each of which is stored with its decoded representation. Returns
/// the representation of the next codec's input.
///
/// Consecutive transpositions are merged, and dropped if they cancel out, so that partial access stays possible.
fn push(
    codecs: &mut Vec<(Arc<dyn ArrayToArray>, ChunkRepresentation)>,
    decoded: ChunkRepresentation,
    codec: Arc<dyn ArrayToArray>,
    encoded: ChunkRepresentation,
) -> Result<ChunkRepresentation, ChainError> {
    let previous = codecs.last().and_then(|(last, array)| Some((last.permutation()?, codec.permutation()?, array)));
    if let Some((first, second, array)) = previous {
        let order = second.iter().filter_map(|&axis| first.get(axis).copied()).collect();
        let merged = transpose_codec(array, order)?;
        if let (Some((codec, encoded)), Some((_, array))) = (merged, codecs.pop()) {
            return push(codecs, array, codec, encoded);
        }
    }
    if codec.is_identity() {
        return Ok(encoded);
    }
    codecs.push((codec, decoded));
    Ok(encoded)
}

/// The bound of a codec's output, given that of its input.
fn encoded_size(codec: &dyn BytesToBytes, decoded: EncodedSizeBound) -> EncodedSizeBound {
    match (decoded, codec.encoded_size(decoded.max())) {
        (EncodedSizeBound::Exact(_), encoded) => encoded,
        (EncodedSizeBound::AtMost(_), encoded) => EncodedSizeBound::AtMost(encoded.max()),
    }
}
