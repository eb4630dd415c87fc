//! Documents of the 2020 draft of v3: one entry point per hierarchy, and a document per array and explicit group.
//!
//! Specification: [Zarr core protocol
//! 3.0-dev](https://zarr-specs.readthedocs.io/en/core-protocol-v3.0-dev/protocol/core/v3.0.html#metadata). Also
//! supported are the list `codecs` of the 2019 draft in place of `compressor`, and the output of zarr-python 2.13 to
//! 2.18: `filters` in the attributes, structured types and objects as extension types, and the sharding [storage
//! transformer](https://zarr-specs.readthedocs.io/en/latest/v3/array-storage-transformers/sharding/v1.0.html). Unknown
//! members are reserved for compatible later versions: they are ignored and preserved.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    DocumentError, Feature, GroupModel, JsonPath,
    json::{self as text, ATTRIBUTES},
    parts,
};
use crate::{
    ArrayModel, Dialect,
    chunk_keys::{ChunkKeyEncoding, ChunkKeyForm, Separator},
    codecs::CodecSpec,
    data_type::{self, DataType, StoredOrder, TypeError, V2Context},
    extensions::{self, Extension, ExtensionEntry, NodeContext},
    json::{Json, Kind},
    limits::{MAX_EXTENT, MAX_SHARD_DEPTH},
    text::{pointer_to, truncated},
};

/// The members of an array's document, including older ones and those that only zarr-python writes.
pub(crate) const ARRAY_MEMBERS: &[&str] = &[
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_memory_layout",
    "compressor",
    "codecs",
    "fill_value",
    "extensions",
    "attributes",
    "storage_transformers",
    "dimension_separator",
];

const ENTRY_POINT_MEMBERS: &[&str] = &["zarr_format", "metadata_encoding", "metadata_key_suffix", "extensions"];

/// The entry point of a hierarchy: its `zarr.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryPoint {
    /// The suffix of the keys of metadata documents, usually `.json`.
    pub metadata_key_suffix: String,
    /// The extensions of the hierarchy, all of them optional.
    pub extensions: Vec<Extension>,
    /// The document as read.
    pub document: Json,
}

/// URIs of the draft's JSON encoding: of the draft, of its later name, and of its first versions.
const JSON_ENCODINGS: [&str; 3] = [
    "https://purl.org/zarr/spec/protocol/core/3.0",
    "https://purl.org/zarr/spec/core/3.0",
    "https://tools.ietf.org/html/rfc8259",
];

pub(crate) const CODECS: &str = "https://purl.org/zarr/spec/codec/";

pub(crate) const SHARDING: &str = "https://purl.org/zarr/spec/storage_transformers/sharding/1.0";

/// The maximum length of the suffix of metadata keys, in bytes.
const MAX_SUFFIX_LEN: usize = 64;

impl EntryPoint {
    /// The metadata key of the array at `path`, below the prefix of the hierarchy. The path is relative to the root of
    /// the hierarchy, without a leading `/`; the root is the empty text.
    pub fn array_key(&self, path: &str) -> String {
        self.metadata_key(path, "array")
    }

    /// The metadata key of the group at `path`.
    pub fn group_key(&self, path: &str) -> String {
        self.metadata_key(path, "group")
    }

    fn metadata_key(&self, path: &str, node_type: &str) -> String {
        let slash = if path.is_empty() { "" } else { "/" };
        format!("meta/root{slash}{path}.{node_type}{}", self.metadata_key_suffix)
    }
}

/// The prefix of the metadata keys of all nodes below `path`: `meta/root/foo/`.
pub fn children_prefix(path: &str) -> String {
    root_prefix("meta", path)
}

/// The prefix of the chunk keys of the array at `path`: `data/root/foo/`.
pub fn chunk_prefix(path: &str) -> String {
    root_prefix("data", path)
}

fn root_prefix(kind: &str, path: &str) -> String {
    if path.is_empty() { format!("{kind}/root/") } else { format!("{kind}/root/{path}/") }
}

/// True if a `zarr.json` is the entry point of a draft hierarchy: its `zarr_format` is a URI, not a number.
pub fn is_entry_point(zarr_json: &Bytes) -> bool {
    text::read(zarr_json.clone()).is_ok_and(|document| has_uri(&document))
}

/// True if the `zarr_format` of a document is a URI.
pub fn has_uri(document: &Json) -> bool {
    let format = document.get("zarr_format").and_then(|format| format.to_text());
    format.is_some_and(|format| format.contains("://"))
}

/// Reads the entry point of a hierarchy.
pub fn entry_point(zarr_json: impl Into<Bytes>) -> Result<EntryPoint, DocumentError> {
    let document = text::read(zarr_json)?;
    let description = text::description(&document, ENTRY_POINT_MEMBERS)?;
    let root = JsonPath::root(&description);
    let format = root.required("zarr_format")?;
    if !format.value.as_str().is_some_and(has_major_3) {
        return Err(DocumentError::WrongFormat {
            expected: "a URI of version 3",
            found: truncated(&format.value.to_string()),
        });
    }
    let encoding = root.required("metadata_encoding")?;
    if !JSON_ENCODINGS.contains(&encoding.text()?) {
        return Err(encoding.unsupported(Feature::MetadataEncoding, encoding.text()?));
    }
    Ok(EntryPoint {
        metadata_key_suffix: root
            .member("metadata_key_suffix")?
            .map_or(Ok(".json".to_owned()), |path| suffix(&path))?,
        extensions: extensions::resolve_extensions(&extensions(&root)?, NodeContext::Hierarchy)?,
        document,
    })
}

/// Reads the document of the array at `path`, the path of [`EntryPoint::array_key`].
pub fn array(document: impl Into<Bytes>, path: &str) -> Result<ArrayModel, DocumentError> {
    read_array(text::read(document)?, path)
}

/// Reads the parsed document of the array at `path`.
pub fn read_array(document: Json, path: &str) -> Result<ArrayModel, DocumentError> {
    let description = text::description(&document, ARRAY_MEMBERS)?;
    let root = JsonPath::root(&description);
    let shape = parts::shape(&root.required("shape")?)?;
    let entries = extensions(&root)?;
    let attributes = parts::attributes(&document)?;
    let named = named_codecs(&root, &attributes)?;
    let data_type = root.required("data_type")?;
    let (element, byte_order) = element_type(data_type.value, named.first())
        .map_err(|source| DocumentError::DataType { pointer: data_type.pointer.clone(), source })?;
    let memory_order = memory_order(&root.required("chunk_memory_layout")?)?;
    let stored =
        parts::StoredElements { data_type: &element, byte_order: &byte_order, memory_order, rank: shape.len() };
    let codecs = parts::chain(&stored, named)
        .ok_or_else(|| data_type.invalid("has elements of variable length, but no array-to-bytes filter"))?;
    let grid = root.required("chunk_grid")?;
    let (chunk_shape, chunk_keys) = chunk_grid(&grid, &shape)?;
    let (chunk_shape, codecs) = with_sharding_transformers(&root, chunk_shape, codecs)?;
    let host = NodeContext::Array { shape: shape.clone(), data_type: &element };
    let extensions = extensions::resolve_extensions(&entries, host)?;
    Ok(ArrayModel {
        dialect: Dialect::Draft,
        dimension_names: parts::xarray_names(&attributes, shape.len()),
        fill_value: parts::fill_value(&root.required("fill_value")?, &element, Dialect::Draft, &byte_order)?,
        view_offset: extensions::view_offset(&extensions, shape.len()),
        shape,
        data_type: element,
        grid: parts::regular(&grid, &chunk_shape)?,
        chunk_keys,
        chunk_prefix: chunk_prefix(path),
        codecs,
        attributes,
        extensions,
        document,
        bounded_times: None,
    })
}

/// Reads the document of a group.
pub fn group(document: impl Into<Bytes>) -> Result<GroupModel, DocumentError> {
    read_group(text::read(document)?)
}

/// Reads the parsed document of a group.
pub fn read_group(document: Json) -> Result<GroupModel, DocumentError> {
    let description = text::description(&document, &["extensions"])?;
    Ok(GroupModel {
        dialect: Dialect::Draft,
        attributes: parts::attributes(&document)?,
        extensions: extensions::resolve_extensions(&extensions(&JsonPath::root(&description))?, NodeContext::Group)?,
        consolidated: None,
        document,
    })
}

/// True if the last segment of a URI is a version with major number 3.
fn has_major_3(uri: &str) -> bool {
    uri.contains("://") && uri.rsplit('/').next().is_some_and(|version| is_version(version, "3"))
}

/// True if a text is `major` or `major.minor`.
fn is_version(text: &str, major: &str) -> bool {
    let rest = text.strip_prefix(major).map(|rest| rest.strip_prefix('.'));
    match rest {
        Some(Some(minor)) => !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit()),
        Some(None) => text == major,
        None => false,
    }
}

/// Reads the suffix of metadata keys. It has the characters of the draft's keys except `/`, which would put the
/// metadata keys of a node below the node.
fn suffix(path: &JsonPath<'_>) -> Result<String, DocumentError> {
    let suffix = path.text()?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    match suffix.len() <= MAX_SUFFIX_LEN && suffix.bytes().all(allowed) {
        true => Ok(suffix.to_owned()),
        false => {
            Err(path.invalid(format!("is not up to {MAX_SUFFIX_LEN} of the characters a-z, A-Z, 0-9, ., - and _")))
        }
    }
}

/// Reads the `extensions` of an entry point, an array or a group.
fn extensions<'a>(root: &JsonPath<'a>) -> Result<Vec<ExtensionEntry<'a>>, DocumentError> {
    let Some(list) = root.member("extensions")? else { return Ok(Vec::new()) };
    let extension = |path: JsonPath<'a>| {
        let name = path.required("extension")?.text()?;
        let (configuration, must_understand) = (path.member_or_null("configuration")?, parts::must_understand(&path)?);
        ExtensionEntry::new(path, name, configuration, must_understand)
    };
    list.items()?.map(extension).collect()
}

/// The codecs that the document lists: the filters of zarr-python, then the compressor or the pipeline of the 2019
/// draft.
fn named_codecs(root: &JsonPath<'_>, attributes: &Json) -> Result<Vec<CodecSpec>, DocumentError> {
    let mut named = filters(attributes)?;
    let pipeline = root.member_or_null("codecs")?;
    let compressor = root.member_or_null("compressor")?;
    if let (Some(path), Some(_)) = (&pipeline, &compressor) {
        return Err(path.invalid("conflicts with the compressor"));
    }
    named.extend(parts::codecs(pipeline, codec)?);
    named.extend(compressor.map(|path| codec(&path)).transpose()?);
    Ok(named)
}

/// The attribute in which zarr-python stores filters.
pub(crate) const FILTERS: &str = "filters";

/// The filters of zarr-python in the attributes; `None` if the attribute is not a list of objects with an `id`, and so
/// belongs to the user.
pub(crate) fn filters_of(attributes: &Json) -> Option<Json> {
    let is_filter = |value: Json| value.get("id").is_some_and(|id| id.kind() == Kind::String);
    attributes.get(FILTERS).filter(|filters| filters.kind() == Kind::Array && filters.items().all(is_filter))
}

fn filters(attributes: &Json) -> Result<Vec<CodecSpec>, DocumentError> {
    if filters_of(attributes).is_none() {
        return Ok(Vec::new());
    }
    let filters = text::description(attributes, &[FILTERS])?;
    let path = JsonPath { value: &filters, pointer: pointer_to("", ATTRIBUTES) };
    parts::codecs(path.member(FILTERS)?, parts::numcodecs)
}

/// Reads `{"codec": URI, "configuration": {…}}`.
fn codec(path: &JsonPath<'_>) -> Result<CodecSpec, DocumentError> {
    let uri = path.required("codec")?;
    let id = codec_id(uri.text()?).ok_or_else(|| uri.unsupported(Feature::Codec, uri.value.as_str().unwrap_or("")))?;
    Ok(CodecSpec::numcodecs(id, parts::configuration(path.member_or_null("configuration")?)?))
}

/// The id in the URI of a codec, which may end in a version 1.
fn codec_id(uri: &str) -> Option<&str> {
    let name = uri.strip_prefix(CODECS)?;
    let id = match name.split_once('/') {
        Some((id, version)) => is_version(version, "1").then_some(id)?,
        None => name,
    };
    (!id.is_empty()).then_some(id)
}

/// Reads a data type. For objects and structured types, zarr-python writes the `dtype` of v2 as the extension's type.
fn element_type(data_type: &Value, first_filter: Option<&CodecSpec>) -> Result<(DataType, StoredOrder), TypeError> {
    let context = V2Context { object_codec: first_filter };
    match data_type.get("type") {
        Some(Value::Array(fields)) => data_type::parse_v2(unnamed_field(fields).unwrap_or(&json!(fields)), context),
        Some(dtype) if dtype == "|O" => data_type::parse_v2(dtype, context),
        _ => data_type::parse_draft(data_type),
    }
}

/// The type of the only field, without a name, by which zarr-python writes unstructured voids: `[["", "|V4"]]`.
fn unnamed_field(fields: &[Value]) -> Option<&Value> {
    let [field] = fields else { return None };
    let [name, data_type] = field.as_array()?.as_slice() else { return None };
    (name == "").then_some(data_type)
}

fn memory_order(path: &JsonPath<'_>) -> Result<parts::MemoryOrder, DocumentError> {
    match path.value.is_object() {
        true => Err(path.unsupported(Feature::ChunkMemoryLayout, path.required("extension")?.text()?)),
        false => parts::memory_order(path),
    }
}

/// Reads a regular grid: the shape of its chunks, and their key encoding.
fn chunk_grid(path: &JsonPath<'_>, shape: &[u64]) -> Result<(Vec<u64>, ChunkKeyEncoding), DocumentError> {
    if let Some(extension) = path.member("extension")? {
        return Err(path.unsupported(Feature::ChunkGrid, extension.text()?));
    }
    let kind = path.required("type")?.text()?;
    if kind != "regular" {
        return Err(path.unsupported(Feature::ChunkGrid, kind));
    }
    let chunk_shape = parts::chunk_shape(&path.required("chunk_shape")?, shape, &[])?;
    let separator = path.member("separator")?;
    let separator = separator.map_or(Ok(Separator::Slash), |path| parts::separator(&path))?;
    Ok((chunk_shape, ChunkKeyEncoding { form: ChunkKeyForm::Draft, separator }))
}

/// Adds the storage transformers to a chain: the first one makes shards of chunks, the next one shards of those, and so
/// on. Returns the shape of the outermost shards and their chain.
fn with_sharding_transformers(
    root: &JsonPath<'_>,
    mut shape: Vec<u64>,
    mut codecs: Vec<CodecSpec>,
) -> Result<(Vec<u64>, Vec<CodecSpec>), DocumentError> {
    let Some(path) = root.member_or_null("storage_transformers")? else { return Ok((shape, codecs)) };
    if path.list()?.len() > MAX_SHARD_DEPTH {
        return Err(path.invalid(format!("makes shards more than {MAX_SHARD_DEPTH} deep")));
    }
    for path in path.items()? {
        let inner: Vec<_> = codecs.iter().map(CodecSpec::to_v3).collect();
        let outer = shard_shape(&path, &shape)?;
        let configuration = [
            ("chunk_shape", json!(shape)),
            ("codecs", json!(inner)),
            ("index_codecs", json!([{"name": "bytes", "configuration": {"endian": "little"}}])),
            ("index_location", json!("end")),
        ];
        codecs = vec![CodecSpec::v3("sharding_indexed", parts::object(configuration))];
        shape = outer;
    }
    Ok((shape, codecs))
}

/// The shape of the shards of one storage transformer.
fn shard_shape(path: &JsonPath<'_>, chunk_shape: &[u64]) -> Result<Vec<u64>, DocumentError> {
    let extension = path.required("extension")?.text()?;
    if extension != SHARDING {
        return Err(path.unsupported(Feature::StorageTransformer, extension));
    }
    let kind = path.required("type")?.text()?;
    if kind != "indexed" {
        return Err(path.unsupported(Feature::StorageTransformer, kind));
    }
    let path = path.required("configuration")?.required("chunks_per_shard")?;
    let per_shard = chunks_per_shard(&path, chunk_shape.len())?;
    let lengths = chunk_shape
        .iter()
        .zip(per_shard)
        .map(|(&length, count)| length.checked_mul(count).filter(|&length| (1..=MAX_EXTENT).contains(&length)));
    lengths
        .collect::<Option<_>>()
        .ok_or_else(|| path.invalid("makes a shard that is empty or exceeds the maximum extent"))
}

/// The number of chunks per shard along each dimension. zarr-python omits the number of a dimension that stems from the
/// data type, writes `[1]` for arrays without dimensions, and accepts a bare number for a list of one.
fn chunks_per_shard(path: &JsonPath<'_>, rank: usize) -> Result<Vec<u64>, DocumentError> {
    let mut counts = match path.value.is_number() {
        true => vec![path.unsigned()?],
        false => parts::shape(path)?,
    };
    if rank == 0 && counts == [1] {
        counts.clear();
    }
    if counts.len() > rank {
        return Err(path.invalid(format!("has {} entries for {rank} dimensions", counts.len())));
    }
    counts.resize(rank, 1);
    Ok(counts)
}
