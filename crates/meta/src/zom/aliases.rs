//! Alternative notations in requests, and their stored forms.
//!
//! | version, member | notation | stored form |
//! |---|---|---|
//! | v3 `data_type` | a `dtype` of v2 that begins with `<`, `>` or a bar: `"<f4"` | its name in v3: `"float32"` |
//! | v3 `codecs`, also those of shards; v2 `filters` and `compressor` | the name of a class of numcodecs: `"GZip"` | that of the codec: `"gzip"`; see [`CLASSES`] |
//! | v3 `codecs`, also those of shards | no array-to-bytes codec | `bytes`, with an `endian` for multi-byte words: that of the `dtype`, or little; `vlen-utf8` and `vlen-bytes` for strings and byte strings |
//! | v3 `codecs`, also those of shards | `bytes` without the `endian` that the data type needs, as by pydantic-zarr's `from_array` | with the `endian` of the `dtype`, or little |
//! | v3 `configuration` of anything named | `null` | missing |
//! | v3 `storage_transformers`, `dimension_names` | `null` | missing |
//! | v3 `consolidated_metadata` of a group | anything, because it repeats the members | missing |
//! | v3 `attributes`; v2 and v3 | `null`; missing | `{}` |
//! | v2 `filters` | `{}`, `[]`, missing | `null` |
//! | v2 `dimension_separator` | missing | `"."` |
//!
//! The first five are in the examples of ZEP 6. Invalid values do not change; the reader of documents rejects them.

use serde_json::{Map, Value, json};

use super::ZomFormat;
use crate::data_type::{self, DataType, Layout, StoredOrder, V2Context};

/// The classes of numcodecs, with their ids in v2 and their names in v3: those of registered codecs if the
/// configurations are the same.
static CLASSES: &[(&str, &str, &str)] = &[
    ("Adler32", "adler32", "numcodecs.adler32"),
    ("AsType", "astype", "numcodecs.astype"),
    ("BZ2", "bz2", "numcodecs.bz2"),
    ("BitRound", "bitround", "numcodecs.bitround"),
    ("Blosc", "blosc", "numcodecs.blosc"),
    ("CRC32", "crc32", "numcodecs.crc32"),
    ("CRC32C", "crc32c", "crc32c"),
    ("Categorize", "categorize", "numcodecs.categorize"),
    ("Delta", "delta", "numcodecs.delta"),
    ("FixedScaleOffset", "fixedscaleoffset", "numcodecs.fixedscaleoffset"),
    ("Fletcher32", "fletcher32", "numcodecs.fletcher32"),
    ("GZip", "gzip", "gzip"),
    ("JSON", "json2", "numcodecs.json2"),
    ("JenkinsLookup3", "jenkins_lookup3", "numcodecs.jenkins_lookup3"),
    ("LZ4", "lz4", "numcodecs.lz4"),
    ("LZMA", "lzma", "numcodecs.lzma"),
    ("PCodec", "pcodec", "numcodecs.pcodec"),
    ("PackBits", "packbits", "numcodecs.packbits"),
    ("Quantize", "quantize", "numcodecs.quantize"),
    ("Shuffle", "shuffle", "numcodecs.shuffle"),
    ("VLenArray", "vlen-array", "numcodecs.vlen-array"),
    ("VLenBytes", "vlen-bytes", "vlen-bytes"),
    ("VLenUTF8", "vlen-utf8", "vlen-utf8"),
    ("Zlib", "zlib", "numcodecs.zlib"),
    ("Zstd", "zstd", "zstd"),
];

/// The array-to-array codecs of v3. An array-to-bytes codec is only certainly missing if all codecs are in this list
/// and the next.
const ARRAY_TO_ARRAY: &[&str] = &[
    "bitround",
    "cast_value",
    "numcodecs.astype",
    "numcodecs.bitround",
    "numcodecs.delta",
    "numcodecs.fixedscaleoffset",
    "numcodecs.packbits",
    "numcodecs.quantize",
    "scale_offset",
    "transpose",
];

/// The bytes-to-bytes codecs of v3.
const BYTES_TO_BYTES: &[&str] = &[
    "blosc",
    "crc32c",
    "gzip",
    "numcodecs.adler32",
    "numcodecs.blosc",
    "numcodecs.bz2",
    "numcodecs.crc32",
    "numcodecs.crc32c",
    "numcodecs.fletcher32",
    "numcodecs.gzip",
    "numcodecs.jenkins_lookup3",
    "numcodecs.lz4",
    "numcodecs.lzma",
    "numcodecs.shuffle",
    "numcodecs.zlib",
    "numcodecs.zstd",
    "zstd",
];

/// Normalizes the described members of an array.
pub(super) fn normalize_array(format: ZomFormat, document: &mut Map<String, Value>) {
    match format {
        ZomFormat::V2 => array_v2(document),
        ZomFormat::V3 => array_v3(document),
    }
}

/// Normalizes the described members of a v3 group.
pub(super) fn normalize_group(document: &mut Map<String, Value>) {
    extensions(document);
}

fn array_v2(document: &mut Map<String, Value>) {
    let filters = document.entry("filters").or_insert(Value::Null);
    if *filters == json!({}) || *filters == json!([]) {
        *filters = Value::Null;
    }
    document.entry("dimension_separator").or_insert_with(|| json!("."));
    let filters = document.get_mut("filters").and_then(Value::as_array_mut);
    filters.into_iter().flatten().for_each(|filter| replace_class_name(filter, "id", class_to_id));
    if let Some(compressor) = document.get_mut("compressor") {
        replace_class_name(compressor, "id", class_to_id);
    }
}

fn array_v3(document: &mut Map<String, Value>) {
    for name in ["storage_transformers", "dimension_names"] {
        if document.get(name).is_some_and(Value::is_null) {
            document.shift_remove(name);
        }
    }
    extensions(document);
    for name in ["data_type", "chunk_grid", "chunk_key_encoding"] {
        document.get_mut(name).into_iter().for_each(remove_null_configuration);
    }
    let order = document.get_mut("data_type").and_then(data_type).unwrap_or(StoredOrder::Little);
    let data_type = document.get("data_type").cloned().unwrap_or_default();
    if let Some(Value::Array(list)) = document.get_mut("codecs") {
        codecs(list, &data_type, &order);
    }
}

fn extensions(document: &mut Map<String, Value>) {
    document
        .get_mut("extensions")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .for_each(remove_null_configuration);
}

/// Removes a `configuration` that is `null`.
fn remove_null_configuration(replace_class_name: &mut Value) {
    let Some(object) = replace_class_name.as_object_mut() else { return };
    if object.get("configuration").is_some_and(Value::is_null) {
        object.shift_remove("configuration");
    }
}

/// Normalizes a data type. Returns the byte order that it implies.
fn data_type(json: &mut Value) -> Option<StoredOrder> {
    if !json.as_str()?.starts_with(['<', '>', '|']) {
        return None;
    }
    let (data_type, order) = data_type::parse_v2(json, V2Context::default()).ok()?;
    *json = data_type.to_v3();
    Some(order)
}

/// Normalizes the codecs of an array, and of the inner chunks of shards.
fn codecs(list: &mut Vec<Value>, data_type: &Value, order: &StoredOrder) {
    for codec in list.iter_mut() {
        remove_null_configuration(codec);
        replace_class_name(codec, "name", class_to_v3_name);
        let Some(configuration) = codec.get_mut("configuration") else { continue };
        if let Some(Value::Array(inner)) = configuration.get_mut("codecs") {
            codecs(inner, data_type, order);
        }
        if let Some(Value::Array(inner)) = configuration.get_mut("index_codecs") {
            inner.iter_mut().for_each(remove_null_configuration);
            inner.iter_mut().for_each(|codec| replace_class_name(codec, "name", class_to_v3_name));
        }
    }
    let codec = data_type::parse_v3(data_type).ok().and_then(|data_type| array_to_bytes_codec(&data_type, order));
    if let Some(bytes) = list.iter_mut().find(|codec| name_of(codec) == Some("bytes") && !has_configuration(codec)) {
        if let Some(codec) = codec.filter(has_configuration) {
            *bytes = codec;
        }
        return;
    }
    let Some(position) = missing_codec_position(list) else { return };
    list.splice(position..position, codec);
}

/// The index at which the array-to-bytes codec is missing; `None` if it may be present.
fn missing_codec_position(codecs: &[Value]) -> Option<usize> {
    let names: Option<Vec<_>> = codecs.iter().map(name_of).collect();
    let names = names?;
    let arrays = names.iter().take_while(|name| ARRAY_TO_ARRAY.contains(name)).count();
    names.iter().skip(arrays).all(|name| BYTES_TO_BYTES.contains(name)).then_some(arrays)
}

/// True if a codec has a configuration other than `{}`.
fn has_configuration(codec: &Value) -> bool {
    codec.get("configuration").and_then(Value::as_object).is_some_and(|configuration| !configuration.is_empty())
}

/// The name of a well-formed codec.
fn name_of(codec: &Value) -> Option<&str> {
    match codec {
        Value::String(name) => Some(name),
        Value::Object(object) if object.get("configuration").is_none_or(Value::is_object) => {
            object.get("name")?.as_str()
        }
        _ => None,
    }
}

/// The default array-to-bytes codec of a data type; `None` for types of variable length other than strings and byte
/// strings.
fn array_to_bytes_codec(data_type: &DataType, order: &StoredOrder) -> Option<Value> {
    match data_type.layout() {
        Layout::Fixed(layout) if layout.words.is_empty() => Some(json!({"name": "bytes"})),
        Layout::Fixed(_) => match order {
            StoredOrder::Little => Some(json!({"name": "bytes", "configuration": {"endian": "little"}})),
            StoredOrder::Big => Some(json!({"name": "bytes", "configuration": {"endian": "big"}})),
            StoredOrder::Mixed(_) => None,
        },
        Layout::Variable => match data_type.name().as_str() {
            "string" => Some(json!({"name": "vlen-utf8"})),
            "bytes" => Some(json!({"name": "vlen-bytes"})),
            _ => None,
        },
    }
}

/// Replaces the class name of a codec by its codec name, in the codec itself if it is a string, or else in this member.
fn replace_class_name(codec: &mut Value, member: &str, class_to_v3_name: impl Fn(&str) -> Option<&'static str>) {
    let name = if codec.is_string() { Some(codec) } else { codec.get_mut(member) };
    let Some(Value::String(name)) = name else { return };
    if let Some(codec_name) = class_to_v3_name(name) {
        codec_name.clone_into(name);
    }
}

fn class_to_id(class: &str) -> Option<&'static str> {
    CLASSES.iter().find(|(name, ..)| *name == class).map(|(_, id, _)| *id)
}

fn class_to_v3_name(class: &str) -> Option<&'static str> {
    CLASSES.iter().find(|(name, ..)| *name == class).map(|(.., name)| *name)
}
