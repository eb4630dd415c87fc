//! Documents of v3: one `zarr.json` per node.
//!
//! Specification: [Zarr v3.1](https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html#metadata), with the
//! generic `extensions` of [ZEP 10](https://zarr.dev/zeps/draft/ZEP0010.html) and the consolidated metadata that
//! zarr-python writes in groups. Any other unknown member must be an object with `"must_understand": false`. As by
//! zarr-python, an optional member that is `null` is treated as missing.

use bytes::Bytes;
use serde_json::Value;

use super::{ConsolidatedMetadata, DocumentError, Feature, GroupModel, JsonPath, json, parts};
use crate::{
    ArrayModel, Dialect,
    chunk_keys::{ChunkKeyEncoding, ChunkKeyForm, Separator},
    codecs::CodecSpec,
    data_type,
    extensions::{self, ExtensionEntry, NodeContext},
    grid::{ChunkGrid, DimensionGrid},
    json::{Json, MemberSlices},
    limits::MAX_LISTED_CHUNKS,
    text::{pointer_to, truncated},
};

/// The node that a `zarr.json` describes.
#[derive(Clone, Debug)]
pub enum Node {
    /// An array.
    Array(Box<ArrayModel>),
    /// A group.
    Group(GroupModel),
}

pub(crate) const ARRAY_MEMBERS: &[&str] = &[
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "storage_transformers",
    "dimension_names",
    "extensions",
];

pub(crate) const GROUP_MEMBERS: &[&str] =
    &["zarr_format", "node_type", "attributes", "consolidated_metadata", "extensions"];

/// Reads a `zarr.json`.
pub fn node(zarr_json: impl Into<Bytes>) -> Result<Node, DocumentError> {
    read(json::read(zarr_json)?)
}

/// Reads a parsed `zarr.json`.
pub fn read(document: Json) -> Result<Node, DocumentError> {
    if has_text(&document, "zarr_format", b"3") {
        // The usual notation needs no parsing.
        if has_text(&document, "node_type", b"\"array\"") {
            return Ok(Node::Array(Box::new(array(document)?)));
        }
        if has_text(&document, "node_type", b"\"group\"") {
            return Ok(Node::Group(group(document)?));
        }
    }
    let kind = json::description(&document, &["zarr_format", "node_type"])?;
    let root = JsonPath::root(&kind);
    let format = root.required("zarr_format")?;
    if format.value != 3 {
        return Err(DocumentError::WrongFormat { expected: "3", found: truncated(&format.value.to_string()) });
    }
    let node_type = root.required("node_type")?;
    match node_type.text()? {
        "array" => Ok(Node::Array(Box::new(array(document)?))),
        "group" => Ok(Node::Group(group(document)?)),
        found => Err(DocumentError::WrongNodeType { found: truncated(found) }),
    }
}

/// True if the last member of this name has this text.
fn has_text(document: &Json, name: &str, text: &[u8]) -> bool {
    document.member_slices().filter(|member| member.is_named(name)).last().is_some_and(|member| member.value() == text)
}

fn array(document: Json) -> Result<ArrayModel, DocumentError> {
    let description = json::description(&document, ARRAY_MEMBERS)?;
    let root = JsonPath::root(&description);
    let shape = parts::shape(&root.required("shape")?)?;
    check_members(&document, ARRAY_MEMBERS)?;
    let entries = extensions(&root)?;
    let codecs = codecs(&root.required("codecs")?)?;
    let grid = grid(&root.required("chunk_grid")?, &shape, &codecs)?;
    let data_type = root.required("data_type")?;
    let data_type = data_type::parse_v3(data_type.value)
        .map_err(|source| DocumentError::DataType { pointer: data_type.pointer, source })?;
    let fill_value =
        parts::fill_value(&root.required("fill_value")?, &data_type, Dialect::V3, &data_type::StoredOrder::Little)?;
    let chunk_keys = chunk_keys(&root.required("chunk_key_encoding")?)?;
    reject_storage_transformers(&root)?;
    let host = NodeContext::Array { shape: shape.clone(), data_type: &data_type };
    let extensions = extensions::resolve_extensions(&entries, host)?;
    Ok(ArrayModel {
        dialect: Dialect::V3,
        dimension_names: dimension_names(root.member_or_null("dimension_names")?, shape.len())?,
        view_offset: extensions::view_offset(&extensions, shape.len()),
        shape,
        data_type,
        fill_value,
        grid,
        chunk_keys,
        chunk_prefix: String::new(),
        codecs,
        attributes: parts::attributes_or_null(&document)?,
        extensions,
        document,
        bounded_times: None,
    })
}

fn group(document: Json) -> Result<GroupModel, DocumentError> {
    let description = json::description(&document, &["extensions"])?;
    check_members(&document, GROUP_MEMBERS)?;
    Ok(GroupModel {
        dialect: Dialect::V3,
        attributes: parts::attributes_or_null(&document)?,
        extensions: extensions::resolve_extensions(&extensions(&JsonPath::root(&description))?, NodeContext::Group)?,
        consolidated: consolidated(&document)?,
        document,
    })
}

/// Fails if an unknown member must be understood.
fn check_members(document: &Json, known: &[&str]) -> Result<(), DocumentError> {
    let ignorable = |value: Json| value.get("must_understand").is_some_and(|value| value.as_bytes() == b"false");
    let is_known = |member: &MemberSlices<'_>| known.iter().any(|name| member.is_named(name));
    match document.member_slices().find(|member| !is_known(member) && !ignorable(member.to_json())) {
        Some(member) => {
            let name = member.name().unwrap_or_default();
            Err(DocumentError::Extension { pointer: pointer_to("", &name), name: truncated(&name) })
        }
        None => Ok(()),
    }
}

/// Reads ZEP 10's list of extensions.
fn extensions<'a>(root: &JsonPath<'a>) -> Result<Vec<ExtensionEntry<'a>>, DocumentError> {
    let Some(list) = root.member("extensions")? else { return Ok(Vec::new()) };
    if list.list()?.is_empty() {
        return Err(list.invalid("is empty"));
    }
    let extension = |path: JsonPath<'a>| {
        let named = NamedConfiguration::parse(&path)?;
        let must_understand = path.value.is_string() || parts::must_understand(&path)?;
        ExtensionEntry::new(path, named.name, named.configuration, must_understand)
    };
    list.items()?.map(extension).collect()
}

/// A name, or an object with a name and a configuration ([extension
/// definition](https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html#extension-definition)).
struct NamedConfiguration<'a> {
    name: &'a str,
    configuration: Option<JsonPath<'a>>,
}

impl<'a> NamedConfiguration<'a> {
    fn parse(path: &JsonPath<'a>) -> Result<Self, DocumentError> {
        if let Some(name) = path.value.as_str() {
            return Ok(Self { name, configuration: None });
        }
        if !path.value.is_object() {
            return Err(path.invalid("is neither a name nor an object with one"));
        }
        path.only(&["name", "configuration", "must_understand"])?;
        Ok(Self { name: path.required("name")?.text()?, configuration: path.member_or_null("configuration")? })
    }

    /// The configuration, if it is required.
    fn configuration(self, path: &JsonPath<'_>) -> Result<JsonPath<'a>, DocumentError> {
        self.configuration.ok_or_else(|| DocumentError::Missing { pointer: path.pointer_to("configuration") })
    }
}

fn codecs(path: &JsonPath<'_>) -> Result<Vec<CodecSpec>, DocumentError> {
    let codec = |path: &JsonPath<'_>| {
        CodecSpec::parse_v3(path.value).map_err(|source| DocumentError::Codec { pointer: path.pointer.clone(), source })
    };
    let codecs = parts::codecs(Some(path.clone()), codec)?;
    if codecs.is_empty() { Err(path.invalid("is empty")) } else { Ok(codecs) }
}

fn grid(path: &JsonPath<'_>, shape: &[u64], codecs: &[CodecSpec]) -> Result<ChunkGrid, DocumentError> {
    let named = NamedConfiguration::parse(path)?;
    match named.name {
        "regular" => {
            let configuration = named.configuration(path)?;
            configuration.only(&["chunk_shape"])?;
            let path = configuration.required("chunk_shape")?;
            parts::regular(&path, &parts::chunk_shape(&path, shape, &inner_chunk_shape(codecs))?)
        }
        "rectilinear" => rectilinear(&named.configuration(path)?, shape),
        name => Err(path.unsupported(Feature::ChunkGrid, name)),
    }
}

/// The shape of the inner chunks if chunks are shards, whose shape is a multiple of it; empty otherwise.
fn inner_chunk_shape(codecs: &[CodecSpec]) -> Vec<u64> {
    let shape = codecs.iter().find(|codec| codec.name == "sharding_indexed");
    let shape = shape.and_then(|sharding| sharding.configuration.get("chunk_shape")?.as_array());
    shape.and_then(|shape| shape.iter().map(Value::as_u64).collect()).unwrap_or_default()
}

/// Reads the configuration of a [rectilinear
/// grid](https://github.com/zarr-developers/zarr-extensions/tree/main/chunk-grids/rectilinear): for each dimension one
/// length, or a list of lengths `v` and of runs `[v, n]` of `n` times `v`.
fn rectilinear(configuration: &JsonPath<'_>, shape: &[u64]) -> Result<ChunkGrid, DocumentError> {
    configuration.only(&["kind", "chunk_shapes"])?;
    let kind = configuration.required("kind")?;
    if kind.text()? != "inline" {
        return Err(kind.invalid("is not \"inline\""));
    }
    let path = configuration.required("chunk_shapes")?;
    parts::check_rank(&path, shape.len())?;
    let mut remaining = MAX_LISTED_CHUNKS;
    let dimension = |(path, &extent): (JsonPath<'_>, &u64)| {
        if path.value.is_number() {
            return Ok(DimensionGrid::Regular { length: positive(&path)? });
        }
        let chunk_lengths = chunk_lengths(&path, &mut remaining)?;
        let grid = DimensionGrid::rectilinear(chunk_lengths)
            .ok_or_else(|| path.invalid("has chunks beyond the maximum extent"))?;
        match grid.covers(extent) {
            true => Ok(grid),
            false => Err(path.invalid(format!("has chunks for fewer than the {extent} elements of the dimension"))),
        }
    };
    Ok(ChunkGrid::new(path.items()?.zip(shape).map(dimension).collect::<Result<_, _>>()?))
}

/// The chunk lengths of one dimension, at most `remaining` of them.
fn chunk_lengths(path: &JsonPath<'_>, remaining: &mut u64) -> Result<Vec<u64>, DocumentError> {
    let mut chunk_lengths = Vec::new();
    for item in path.items()? {
        let (length, count) = match item.value {
            Value::Array(_) => length_and_count(&item)?,
            _ => (positive(&item)?, 1),
        };
        *remaining = remaining
            .checked_sub(count)
            .ok_or_else(|| path.invalid(format!("has more than {MAX_LISTED_CHUNKS} chunks")))?;
        chunk_lengths.extend((0..count).map(|_| length));
    }
    Ok(chunk_lengths)
}

/// Reads `[v, n]`.
fn length_and_count(path: &JsonPath<'_>) -> Result<(u64, u64), DocumentError> {
    let mut numbers = path.items()?;
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(length), Some(count), None) => Ok((positive(&length)?, positive(&count)?)),
        _ => Err(path.invalid("is not a pair of a length and a count")),
    }
}

fn positive(path: &JsonPath<'_>) -> Result<u64, DocumentError> {
    match path.unsigned()? {
        0 => Err(path.invalid("is 0")),
        number => Ok(number),
    }
}

fn chunk_keys(path: &JsonPath<'_>) -> Result<ChunkKeyEncoding, DocumentError> {
    let named = NamedConfiguration::parse(path)?;
    let (form, default) = match named.name {
        "default" => (ChunkKeyForm::Default, Separator::Slash),
        "v2" => (ChunkKeyForm::V2, Separator::Dot),
        name => return Err(path.unsupported(Feature::ChunkKeyEncoding, name)),
    };
    let Some(configuration) = named.configuration else { return Ok(ChunkKeyEncoding { form, separator: default }) };
    configuration.only(&["separator"])?;
    let separator = configuration.member("separator")?;
    let separator = separator.map_or(Ok(default), |path| parts::separator(&path))?;
    Ok(ChunkKeyEncoding { form, separator })
}

fn reject_storage_transformers(root: &JsonPath<'_>) -> Result<(), DocumentError> {
    let Some(path) = root.member_or_null("storage_transformers")? else { return Ok(()) };
    match path.items()?.next() {
        Some(first) => Err(first.unsupported(Feature::StorageTransformer, NamedConfiguration::parse(&first)?.name)),
        None => Ok(()),
    }
}

fn dimension_names(path: Option<JsonPath<'_>>, rank: usize) -> Result<Vec<Option<String>>, DocumentError> {
    let Some(path) = path else { return Ok(vec![None; rank]) };
    parts::check_rank(&path, rank)?;
    let name = |path: JsonPath<'_>| match path.value {
        Value::Null => Ok(None),
        Value::String(name) => Ok(Some(name.clone())),
        _ => Err(path.invalid("is neither a string nor null")),
    };
    path.items()?.map(name).collect()
}

/// The member of a group's document with its consolidated metadata.
pub const CONSOLIDATED: &str = "consolidated_metadata";

/// Reads `{"kind": "inline", "must_understand": false, "metadata": {path: document, …}}`. Other kinds are ignored if
/// they are optional.
fn consolidated(document: &Json) -> Result<Option<ConsolidatedMetadata>, DocumentError> {
    let Some(consolidated) = document.get(CONSOLIDATED).filter(|consolidated| !consolidated.is_null()) else {
        return Ok(None);
    };
    let description = match consolidated.is_object() {
        true => json::description(&consolidated, &["kind", "must_understand"])?,
        false => Value::Null,
    };
    let path = JsonPath { value: &description, pointer: pointer_to("", CONSOLIDATED) };
    let kind = path.required("kind")?;
    match kind.text()? {
        "inline" => {
            let pointer = path.pointer_to("metadata");
            let missing = || DocumentError::Missing { pointer: pointer.clone() };
            let metadata = consolidated.get("metadata").ok_or_else(missing)?;
            ConsolidatedMetadata::parse(metadata, &pointer, "/zarr.json").map(Some)
        }
        _ if parts::must_understand(&path)? => Err(kind.invalid("is not \"inline\"")),
        _ => Ok(None),
    }
}
