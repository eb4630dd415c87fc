//! Conversion to arrays of v2.

use serde_json::{Value, json};

use super::{
    chain::ChainParts,
    mask,
    outcome::{ChunkPolicy, Unrepresentable},
    plain_chunks::PlainChunks,
    source::{Source, extensions, node_document},
};
use crate::{
    ArrayModel, Dialect,
    chunk_keys::{ChunkKeyForm, Separator},
    codecs::CodecSpec,
    data_type::{StoredOrder, V2Context, parse_v2},
    documents::members,
    json::Json,
};

pub(super) fn array(source: &mut Source<'_>, chunks: ChunkPolicy) -> Result<Json, Unrepresentable> {
    let ArrayModel { shape, data_type, .. } = source.model;
    let separator = separator(source.model, chunks)?;
    let PlainChunks { shape: chunk_shape, codecs, locations } = match chunks {
        ChunkPolicy::Rewritten => PlainChunks::rewritten(source)?,
        ChunkPolicy::Preserve | ChunkPolicy::Preferred => PlainChunks::stored(source)?,
    };
    let mut parts = ChainParts::of(&codecs, data_type, shape.len(), &locations)?;
    for pointer in std::mem::take(&mut parts.lost_typesizes) {
        source.add_loss(pointer, "the typesize of blosc");
    }
    let dtype = dtype(source, &parts)?;
    let (attributes, fill) = mask::to_fill_value(source);
    let fill_value = fill.json(source, Dialect::V2, &parts.order)?;
    source.add_unknown_members();
    let (_, losses) = extensions(&source.model.extensions, Dialect::V2);
    source.losses.extend(losses);
    let order = if parts.is_fortran_order { "F" } else { "C" };
    let (filters, compressor) = parts.split(source)?;
    let filters = (!filters.is_empty()).then(|| filters.iter().map(codec).collect::<Vec<_>>());
    let members_of_document = members([
        ("zarr_format", json!(2)),
        ("shape", json!(shape)),
        ("chunks", json!(chunk_shape)),
        ("dtype", dtype),
        ("compressor", compressor.as_ref().map_or(Value::Null, codec)),
        ("fill_value", fill_value),
        ("order", json!(order)),
        ("filters", json!(filters)),
        ("dimension_separator", json!(separator.as_str())),
        ("attributes", json!({})),
    ]);
    Ok(node_document(members_of_document, attributes))
}

fn separator(model: &ArrayModel, chunks: ChunkPolicy) -> Result<Separator, Unrepresentable> {
    match (chunks, model.dialect, model.chunk_keys.form) {
        (ChunkPolicy::Preferred | ChunkPolicy::Rewritten, _, _) => Ok(Separator::Dot),
        (ChunkPolicy::Preserve, Dialect::V3, ChunkKeyForm::V2) => Ok(model.chunk_keys.separator),
        (ChunkPolicy::Preserve, Dialect::V3, _) => {
            Err(Unrepresentable::new("/chunk_key_encoding", "names chunks differently than v2"))
        }
        (ChunkPolicy::Preserve, _, _) => {
            Err(Unrepresentable::new("/chunk_grid", "has chunk keys that v2 does not support"))
        }
    }
}

/// The `dtype`, if it is read back as the same data type.
pub(super) fn dtype(source: &Source<'_>, parts: &ChainParts) -> Result<Value, Unrepresentable> {
    let data_type = &source.model.data_type;
    let unrepresentable = || {
        let reason = format!("is {}, for which v2 has no dtype", crate::text::truncated(&data_type.name()));
        Unrepresentable::new(source.data_type_pointer(), reason)
    };
    let dtype = data_type.to_v2(&parts.order).map_err(|_| unrepresentable())?;
    match parse_v2(&dtype, V2Context { object_codec: parts.codecs.first() }) {
        Ok((read, order)) if read == *data_type && (order == parts.order || parts.order == StoredOrder::Little) => {
            Ok(dtype)
        }
        _ => Err(unrepresentable()),
    }
}

/// A codec in the form of numcodecs.
pub(super) fn codec(codec: &CodecSpec) -> Value {
    let mut numcodecs = members([("id", json!(codec.name))]);
    numcodecs.extend(codec.configuration.clone());
    Value::Object(numcodecs)
}
