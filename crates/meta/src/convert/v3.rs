//! Conversion to arrays of v3.

use serde_json::{Value, json};

use super::{
    chain::{as_only_sharding, check_count, inner_codecs, to_v3},
    mask,
    outcome::{ChunkPolicy, Unrepresentable},
    source::{Source, extensions, node_document},
};
use crate::{
    ArrayModel, Dialect,
    codecs::CodecSpec,
    data_type::{StoredOrder, parse_v3},
    documents::members,
    json::Json,
    text::truncated,
};

pub(super) fn array(source: &mut Source<'_>, chunks: ChunkPolicy) -> Result<Json, Unrepresentable> {
    let ArrayModel { shape, codecs, .. } = source.model;
    let chunk_keys = chunk_keys(source.model, chunks)?;
    let chunk_shape = source.chunk_shape()?;
    let data_type = data_type(source)?;
    let codecs = to_v3(codecs, &source.model.data_type, &source.codec_locations(&innermost_codecs(codecs)))?;
    check_count(&codecs, source)?;
    let fill_value = source.fill_value(Dialect::V3, &StoredOrder::Little)?;
    let (attributes, dimension_names) = source.attributes_and_names();
    let attributes = mask::to_attribute(source, attributes);
    source.add_unknown_members();
    let (extensions, losses) = extensions(&source.model.extensions, Dialect::V3);
    source.losses.extend(losses);
    let mut members_of_document = members([
        ("zarr_format", json!(3)),
        ("node_type", json!("array")),
        ("shape", json!(shape)),
        ("data_type", data_type),
        ("chunk_grid", json!({"name": "regular", "configuration": {"chunk_shape": chunk_shape}})),
        ("chunk_key_encoding", chunk_keys),
        ("fill_value", fill_value),
        ("codecs", json!(codecs.iter().map(CodecSpec::to_v3).collect::<Vec<_>>())),
        ("attributes", json!({})),
    ]);
    members_of_document.extend(dimension_names.map(|names| ("dimension_names".to_owned(), names)));
    if !extensions.is_empty() {
        members_of_document.insert("extensions".to_owned(), json!(extensions));
    }
    Ok(node_document(members_of_document, attributes))
}

fn chunk_keys(model: &ArrayModel, chunks: ChunkPolicy) -> Result<Value, Unrepresentable> {
    match (chunks, model.dialect) {
        (ChunkPolicy::Preferred | ChunkPolicy::Rewritten, _) => {
            Ok(json!({"name": "default", "configuration": {"separator": "/"}}))
        }
        (ChunkPolicy::Preserve, Dialect::V2) => {
            Ok(json!({"name": "v2", "configuration": {"separator": model.chunk_keys.separator.as_str()}}))
        }
        (ChunkPolicy::Preserve, _) => {
            Err(Unrepresentable::new("/chunk_grid", "has chunk keys that v3 does not support"))
        }
    }
}

/// The data type, if it is read back as the same.
fn data_type(source: &Source<'_>) -> Result<Value, Unrepresentable> {
    let data_type = &source.model.data_type;
    let json = data_type.to_v3();
    match parse_v3(&json) {
        Ok(read) if read == *data_type => Ok(json),
        _ => {
            let reason = format!("is {}, for which v3 has no registered data type", truncated(&data_type.name()));
            Err(Unrepresentable::new(source.data_type_pointer(), reason))
        }
    }
}

/// The chain of the innermost chunks.
fn innermost_codecs(chain: &[CodecSpec]) -> Vec<CodecSpec> {
    let mut chain = chain.to_vec();
    while let Some(shards) = as_only_sharding(&chain) {
        chain = inner_codecs(shards);
    }
    chain
}
