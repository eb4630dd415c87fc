//! Chunks without shards, all of one shape: those that every dialect has.

use serde_json::Value;

use super::{
    chain::{compose_permutations, inner_codecs, is_sharding, is_v3},
    outcome::Unrepresentable,
    source::{CodecLocations, Source},
};
use crate::{ArrayModel, Dialect, codecs::CodecSpec};

/// The chunks of an array without shards.
pub(super) struct PlainChunks {
    /// The shape of each.
    pub(super) shape: Vec<u64>,
    /// Their codec chain.
    pub(super) codecs: Vec<CodecSpec>,
    /// The locations of the chain's codecs.
    pub(super) locations: CodecLocations,
}

/// True if an array and its conversion have the same chunks, with the same bytes; false if the elements have to be
/// written anew.
pub fn keeps_chunks(original: &ArrayModel, converted: &ArrayModel) -> bool {
    original.grid.regular_shape() == converted.grid.regular_shape()
        && has_shards(&original.codecs) == has_shards(&converted.codecs)
}

impl PlainChunks {
    /// The stored chunks. Fails if they are in shards, or of different shapes.
    pub(super) fn stored(source: &Source<'_>) -> Result<Self, Unrepresentable> {
        let (shape, codecs) = (source.chunk_shape()?, &source.model.codecs);
        if let Some(at) = codecs.iter().position(is_sharding) {
            let pointer = shards_pointer(source, at);
            return Err(Unrepresentable::new(pointer, "makes shards, which v2 does not support"));
        }
        Ok(Self { shape, codecs: codecs.clone(), locations: source.codec_locations(codecs) })
    }

    /// The chunks of an array whose elements can be written anew: those in its shards, with the codecs of both; of
    /// different shapes, all with the longest extents. What becomes different is a loss.
    pub(super) fn rewritten(source: &mut Source<'_>) -> Result<Self, Unrepresentable> {
        let model = source.model;
        let mut shape: Vec<u64> =
            model.grid.dimensions().iter().map(|grid| grid.longest_chunk().unwrap_or(1).max(1)).collect();
        if model.grid.regular_shape().is_none() {
            source.add_loss("/chunk_grid", "that chunks have different shapes: all get the longest extents");
        }
        // The dimension of the array that each dimension of the chain's chunks is.
        let mut dimensions: Vec<usize> = (0..shape.len()).collect();
        let (mut on_elements, mut on_bytes) = (Vec::new(), Vec::new());
        let (mut codecs, mut pointer) = (with_pointers(model.codecs.clone(), "/codecs"), "/codecs".to_owned());
        while let Some(at) = codecs.iter().position(|(_, codec)| is_sharding(codec)) {
            let mut outer = std::mem::take(&mut codecs).into_iter();
            let before: Vec<_> = outer.by_ref().take(at).collect();
            let Some((location, shards)) = outer.next() else { break };
            on_bytes.splice(..0, outer);
            for (location, transpose) in before.iter().filter(|(_, codec)| is_v3(codec, "transpose")) {
                dimensions = compose_permutations(&dimensions, transpose)
                    .map_err(|reason| Unrepresentable::new(location.clone(), reason))?;
            }
            on_elements.extend(before);
            let lengths = shards.configuration.get("chunk_shape").and_then(Value::as_array);
            let lengths = lengths.filter(|lengths| lengths.len() == shape.len());
            let lengths = lengths.and_then(|lengths| lengths.iter().map(Value::as_u64).collect::<Option<Vec<_>>>());
            let Some(lengths) = lengths else {
                return Err(Unrepresentable::new(location, "has no valid chunk_shape"));
            };
            for (dimension, length) in dimensions.iter().zip(lengths) {
                if let Some(extent) = shape.get_mut(*dimension) {
                    *extent = length;
                }
            }
            pointer = format!("{pointer}/{at}/configuration/codecs");
            codecs = with_pointers(inner_codecs(&shards), &pointer);
        }
        if let Some(at) = model.codecs.iter().position(is_sharding) {
            source.add_loss(shards_pointer(source, at), "the shards: each of their chunks is stored by itself");
        }
        let all = on_elements.into_iter().chain(codecs).chain(on_bytes);
        let (pointers, codecs): (Vec<_>, Vec<_>) = all.unzip();
        let locations = match model.dialect {
            Dialect::V3 => CodecLocations::Each(pointers),
            Dialect::V2 | Dialect::Draft => source.codec_locations(&codecs),
        };
        Ok(Self { shape, codecs, locations })
    }
}

fn has_shards(codecs: &[CodecSpec]) -> bool {
    codecs.iter().any(is_sharding)
}

/// The location of the codec that makes shards, which is at an index of the chain.
fn shards_pointer(source: &Source<'_>, at: usize) -> String {
    match source.model.dialect {
        Dialect::Draft => "/storage_transformers".to_owned(),
        Dialect::V2 | Dialect::V3 => format!("/codecs/{at}"),
    }
}

/// The codecs of a list, each with its location.
fn with_pointers(codecs: Vec<CodecSpec>, list: &str) -> Vec<(String, CodecSpec)> {
    codecs.into_iter().enumerate().map(|(index, codec)| (format!("{list}/{index}"), codec)).collect()
}
