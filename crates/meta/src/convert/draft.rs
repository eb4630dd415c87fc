//! Conversion to arrays of the draft, in the form of zarr-python 2.18.7.

use serde_json::{Value, json};

use super::{
    chain::{ChainParts, as_only_sharding, inner_codecs, is_sharding},
    mask,
    outcome::{ChunkPolicy, Unrepresentable},
    plain_chunks::PlainChunks,
    source::{CodecLocations, Source, extensions, node_document},
    v2,
};
use crate::{
    ArrayModel, Dialect,
    codecs::CodecSpec,
    documents::{
        draft::{CODECS, FILTERS, SHARDING},
        members,
    },
    json::{Change, Json},
    limits::MAX_SHARD_DEPTH,
};

/// The codecs with a URI.
const COMPRESSORS: [&str; 7] = ["blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"];

pub(super) fn array(source: &mut Source<'_>, chunks: ChunkPolicy) -> Result<Json, Unrepresentable> {
    let ArrayModel { shape, data_type, .. } = source.model;
    if chunks == ChunkPolicy::Preserve {
        return Err(Unrepresentable::new("", "has chunk keys that the draft does not support"));
    }
    let Shards { chunk_shape, codecs, transformers, locations } = match Shards::of(source) {
        Err(_) if chunks == ChunkPolicy::Rewritten => {
            let PlainChunks { shape: chunk_shape, codecs, locations } = PlainChunks::rewritten(source)?;
            Shards { chunk_shape, codecs, transformers: Vec::new(), locations }
        }
        shards => shards?,
    };
    let mut parts = ChainParts::of(&codecs, data_type, shape.len(), &locations)?;
    for pointer in std::mem::take(&mut parts.lost_typesizes) {
        source.add_loss(pointer, "the typesize of blosc");
    }
    let data_type = to_draft_data_type(v2::dtype(source, &parts)?);
    let (mut attributes, fill) = mask::to_fill_value(source);
    let fill_value = fill.json(source, Dialect::Draft, &parts.order)?;
    source.add_unknown_members();
    let (extensions, losses) = extensions(&source.model.extensions, Dialect::Draft);
    source.losses.extend(losses);
    let layout = if parts.is_fortran_order { "F" } else { "C" };
    parts.ends_with_compressor &= parts.codecs.last().is_some_and(|last| COMPRESSORS.contains(&last.name.as_str()));
    let (filters, compressor) = parts.split(source)?;
    insert_filters(&mut attributes, &filters)?;
    let mut members_of_document = members([
        ("shape", json!(shape)),
        ("data_type", data_type),
        ("chunk_grid", json!({"type": "regular", "chunk_shape": chunk_shape, "separator": "/"})),
        ("chunk_memory_layout", json!(layout)),
        ("fill_value", fill_value),
        ("extensions", json!(extensions)),
        ("attributes", json!({})),
    ]);
    if let Some(CodecSpec { name, configuration, .. }) = compressor {
        let compressor = json!({"codec": format!("{CODECS}{name}/1.0"), "configuration": configuration});
        members_of_document.insert("compressor".to_owned(), compressor);
    }
    if !transformers.is_empty() {
        members_of_document.insert("storage_transformers".to_owned(), json!(transformers));
    }
    Ok(node_document(members_of_document, attributes))
}

/// The shards of an array, as storage transformers.
struct Shards {
    /// The shape of the innermost chunks.
    chunk_shape: Vec<u64>,
    /// The chain of the innermost chunks.
    codecs: Vec<CodecSpec>,
    /// The sharding transformers, innermost first.
    transformers: Vec<Value>,
    /// The locations of the chain's codecs.
    locations: CodecLocations,
}

impl Shards {
    fn of(source: &Source<'_>) -> Result<Self, Unrepresentable> {
        let mut chunk_shape = source.chunk_shape()?;
        let mut codecs = source.model.codecs.clone();
        let mut transformers = Vec::new();
        let mut pointer = "/codecs".to_owned();
        while let Some(shards) = as_only_sharding(&codecs) {
            let unrepresentable = |reason: &str| Unrepresentable::new(format!("{pointer}/0"), reason);
            if transformers.len() == MAX_SHARD_DEPTH {
                return Err(unrepresentable("exceeds the maximum depth of shards"));
            }
            let inner = shards.configuration.get("chunk_shape").and_then(Value::as_array);
            let inner: Option<Vec<u64>> = inner.and_then(|lengths| lengths.iter().map(Value::as_u64).collect());
            let inner = inner.filter(|inner| inner.len() == chunk_shape.len());
            let inner = inner.ok_or_else(|| unrepresentable("has no valid chunk_shape"))?;
            let exact_quotient = |(outer, inner): (&u64, &u64)| {
                outer.checked_div(*inner).filter(|count| count.checked_mul(*inner) == Some(*outer))
            };
            let counts: Option<Vec<u64>> = chunk_shape.iter().zip(&inner).map(exact_quotient).collect();
            let counts = counts.ok_or_else(|| unrepresentable("does not divide its shards into chunks"))?;
            if !has_draft_index(shards) {
                return Err(unrepresentable(
                    "has an index that is not at the end, or not stored as plain little-endian numbers",
                ));
            }
            let transformer =
                json!({"extension": SHARDING, "type": "indexed", "configuration": {"chunks_per_shard": counts}});
            transformers.insert(0, transformer);
            chunk_shape = inner;
            codecs = inner_codecs(shards);
            pointer = format!("{pointer}/0/configuration/codecs");
        }
        if let Some(at) = codecs.iter().position(is_sharding) {
            let reason = "makes shards that other codecs change, which the draft does not support";
            return Err(Unrepresentable::new(format!("{pointer}/{at}"), reason));
        }
        let locations = match source.model.dialect {
            Dialect::V3 => CodecLocations::List(pointer),
            Dialect::V2 | Dialect::Draft => source.codec_locations(&codecs),
        };
        Ok(Self { chunk_shape, codecs, transformers, locations })
    }
}

/// True if the index of the shards is the one that the draft supports.
fn has_draft_index(shards: &CodecSpec) -> bool {
    let at_the_end = shards.configuration.get("index_location").is_none_or(|location| location == "end");
    let codecs = shards.configuration.get("index_codecs").and_then(Value::as_array);
    let codecs = codecs.map(|codecs| codecs.iter().map(CodecSpec::parse_v3).collect::<Result<Vec<_>, _>>());
    let plain = CodecSpec::v3("bytes", members([("endian", json!("little"))]));
    at_the_end && codecs.is_some_and(|codecs| codecs.is_ok_and(|codecs| codecs == [plain]))
}

/// Adds the filters where zarr-python stores them; fails if the user has another attribute of that name.
fn insert_filters(attributes: &mut Json, filters: &[CodecSpec]) -> Result<(), Unrepresentable> {
    if attributes.get(FILTERS).is_some() {
        return Err(Unrepresentable::new(
            "/attributes/filters",
            "is reserved for the filters of the array in the draft",
        ));
    }
    if !filters.is_empty() {
        *attributes = attributes.with(FILTERS, Change::Set(filters.iter().map(v2::codec).collect()));
    }
    Ok(())
}

/// Converts a `dtype` to a data type of the draft: numbers by name, others as extensions.
fn to_draft_data_type(dtype: Value) -> Value {
    let Some(text) = dtype.as_str() else { return extension("TODO: structured array protocol URL", dtype) };
    let mut characters = text.trim_start_matches(['<', '>', '|']).chars();
    let url = match (characters.next(), characters.as_str()) {
        (Some('b'), _) => return json!("bool"),
        (Some(kind @ ('i' | 'u')), "1") => return json!(format!("{kind}1")),
        (Some('i' | 'u' | 'f'), _) => return dtype,
        (Some('c'), _) => {
            "https://zarr-specs.readthedocs.io/en/core-protocol-v3.0-dev/protocol/extensions/complex-dtypes/v1.0.html"
        }
        (Some('M' | 'm'), _) => "https://zarr-specs.readthedocs.io/en/latest/extensions/data-types/datetime/v1.0.html",
        (Some('S'), _) => "TODO: bytestring array protocol URL",
        (Some('U'), _) => "TODO: unicode array protocol URL",
        (Some('V'), _) => return extension("TODO: structured array protocol URL", json!([["", dtype]])),
        _ => "TODO: object array protocol URL",
    };
    extension(url, dtype)
}

fn extension(url: &str, dtype: Value) -> Value {
    json!({"extension": url, "type": dtype, "fallback": null})
}
