//! Documents of v3: one `zarr.json` per node.
//!
//! Specification: [Zarr v3.1](https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html#metadata), with the generic `extensions` of
//! [ZEP 10](https://zarr.dev/zeps/draft/ZEP0010.html) and the consolidated metadata that zarr-python writes in groups. Any other member that the
//! specification does not name has to be an object with `"must_understand": false`. An optional member of the specification that is `null` is read as
//! one that is not there, as zarr-python does.

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
    json::{Json, Member},
    limits::MAX_LISTED_CHUNKS,
    text::{pointer_to, truncated},
};

/// A node: what a `zarr.json` describes.
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

/// Reads what a `zarr.json` says.
pub fn read(document: Json) -> Result<Node, DocumentError> {
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

/// Fails if a member is unknown and must be understood.
fn check_members(document: &Json, known: &[&str]) -> Result<(), DocumentError> {
    let ignorable = |value: &Json| value.get("must_understand").is_some_and(|value| value.as_bytes() == b"false");
    let unknown = |member: &Member| !known.iter().any(|name| member.is_named(name)) && !ignorable(&member.value);
    match document.members().find(unknown) {
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
    let extension = |place: JsonPath<'a>| {
        let named = NamedConfiguration::parse(&place)?;
        let must_understand = place.value.is_string() || parts::must_understand(&place)?;
        ExtensionEntry::new(place, named.name, named.configuration, must_understand)
    };
    list.items()?.map(extension).collect()
}

/// A name, or an object of a name and a configuration
/// ([extension definition](https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html#extension-definition)).
struct NamedConfiguration<'a> {
    name: &'a str,
    configuration: Option<JsonPath<'a>>,
}

impl<'a> NamedConfiguration<'a> {
    fn parse(place: &JsonPath<'a>) -> Result<Self, DocumentError> {
        if let Some(name) = place.value.as_str() {
            return Ok(Self { name, configuration: None });
        }
        if !place.value.is_object() {
            return Err(place.invalid("is neither a name nor an object with one"));
        }
        place.only(&["name", "configuration", "must_understand"])?;
        Ok(Self { name: place.required("name")?.text()?, configuration: place.member_or_null("configuration")? })
    }

    /// The configuration of what cannot do without.
    fn configuration(self, place: &JsonPath<'_>) -> Result<JsonPath<'a>, DocumentError> {
        self.configuration.ok_or_else(|| DocumentError::Missing { pointer: place.pointer_to("configuration") })
    }
}

fn codecs(place: &JsonPath<'_>) -> Result<Vec<CodecSpec>, DocumentError> {
    let codec = |place: &JsonPath<'_>| {
        CodecSpec::parse_v3(place.value)
            .map_err(|source| DocumentError::Codec { pointer: place.pointer.clone(), source })
    };
    let codecs = parts::codecs(Some(place.clone()), codec)?;
    if codecs.is_empty() { Err(place.invalid("is empty")) } else { Ok(codecs) }
}

fn grid(place: &JsonPath<'_>, shape: &[u64], codecs: &[CodecSpec]) -> Result<ChunkGrid, DocumentError> {
    let named = NamedConfiguration::parse(place)?;
    match named.name {
        "regular" => {
            let configuration = named.configuration(place)?;
            configuration.only(&["chunk_shape"])?;
            let place = configuration.required("chunk_shape")?;
            parts::regular(&place, &parts::chunk_shape(&place, shape, &inner_chunk_shape(codecs))?)
        }
        "rectilinear" => rectilinear(&named.configuration(place)?, shape),
        name => Err(place.unsupported(Feature::ChunkGrid, name)),
    }
}

/// The shape of the inner chunks if chunks are shards, which have to be multiples of it; empty otherwise.
fn inner_chunk_shape(codecs: &[CodecSpec]) -> Vec<u64> {
    let shape = codecs.iter().find(|codec| codec.name == "sharding_indexed");
    let shape = shape.and_then(|sharding| sharding.configuration.get("chunk_shape")?.as_array());
    shape.and_then(|shape| shape.iter().map(Value::as_u64).collect()).unwrap_or_default()
}

/// Reads the configuration of a
/// [rectilinear grid](https://github.com/zarr-developers/zarr-extensions/tree/main/chunk-grids/rectilinear): per dimension one length, or a list
/// of lengths `v` and of runs `[v, n]`, which is `n` times `v`.
fn rectilinear(configuration: &JsonPath<'_>, shape: &[u64]) -> Result<ChunkGrid, DocumentError> {
    configuration.only(&["kind", "chunk_shapes"])?;
    let kind = configuration.required("kind")?;
    if kind.text()? != "inline" {
        return Err(kind.invalid("is not \"inline\""));
    }
    let place = configuration.required("chunk_shapes")?;
    parts::check_rank(&place, shape.len())?;
    let mut remaining = MAX_LISTED_CHUNKS;
    let dimension = |(place, &extent): (JsonPath<'_>, &u64)| {
        if place.value.is_number() {
            return Ok(DimensionGrid::Regular { length: positive(&place)? });
        }
        let chunk_lengths = chunk_lengths(&place, &mut remaining)?;
        let grid = DimensionGrid::rectilinear(chunk_lengths)
            .ok_or_else(|| place.invalid("has chunks that are longer than any array"))?;
        match grid.covers(extent) {
            true => Ok(grid),
            false => Err(place.invalid(format!("has chunks for fewer than the {extent} elements of the dimension"))),
        }
    };
    Ok(ChunkGrid::new(place.items()?.zip(shape).map(dimension).collect::<Result<_, _>>()?))
}

/// The lengths of the pieces of one dimension. As many as `left` says may still be listed.
fn chunk_lengths(place: &JsonPath<'_>, remaining: &mut u64) -> Result<Vec<u64>, DocumentError> {
    let mut chunk_lengths = Vec::new();
    for item in place.items()? {
        let (length, count) = match item.value {
            Value::Array(_) => length_and_count(&item)?,
            _ => (positive(&item)?, 1),
        };
        *remaining = remaining
            .checked_sub(count)
            .ok_or_else(|| place.invalid(format!("has more than {MAX_LISTED_CHUNKS} chunks")))?;
        chunk_lengths.extend((0..count).map(|_| length));
    }
    Ok(chunk_lengths)
}

/// Reads `[v, n]`.
fn length_and_count(place: &JsonPath<'_>) -> Result<(u64, u64), DocumentError> {
    let mut numbers = place.items()?;
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(length), Some(count), None) => Ok((positive(&length)?, positive(&count)?)),
        _ => Err(place.invalid("is no pair of a length and a count")),
    }
}

fn positive(place: &JsonPath<'_>) -> Result<u64, DocumentError> {
    match place.unsigned()? {
        0 => Err(place.invalid("is 0")),
        number => Ok(number),
    }
}

fn chunk_keys(place: &JsonPath<'_>) -> Result<ChunkKeyEncoding, DocumentError> {
    let named = NamedConfiguration::parse(place)?;
    let (form, default) = match named.name {
        "default" => (ChunkKeyForm::Default, Separator::Slash),
        "v2" => (ChunkKeyForm::V2, Separator::Dot),
        name => return Err(place.unsupported(Feature::ChunkKeyEncoding, name)),
    };
    let Some(configuration) = named.configuration else { return Ok(ChunkKeyEncoding { form, separator: default }) };
    configuration.only(&["separator"])?;
    let separator = configuration.member("separator")?;
    let separator = separator.map_or(Ok(default), |place| parts::separator(&place))?;
    Ok(ChunkKeyEncoding { form, separator })
}

fn reject_storage_transformers(root: &JsonPath<'_>) -> Result<(), DocumentError> {
    let Some(place) = root.member_or_null("storage_transformers")? else { return Ok(()) };
    match place.items()?.next() {
        Some(first) => Err(first.unsupported(Feature::StorageTransformer, NamedConfiguration::parse(&first)?.name)),
        None => Ok(()),
    }
}

fn dimension_names(place: Option<JsonPath<'_>>, rank: usize) -> Result<Vec<Option<String>>, DocumentError> {
    let Some(place) = place else { return Ok(vec![None; rank]) };
    parts::check_rank(&place, rank)?;
    let name = |place: JsonPath<'_>| match place.value {
        Value::Null => Ok(None),
        Value::String(name) => Ok(Some(name.clone())),
        _ => Err(place.invalid("is neither a string nor null")),
    };
    place.items()?.map(name).collect()
}

/// The member of a group's document with the documents of the nodes below.
pub const CONSOLIDATED: &str = "consolidated_metadata";

/// Reads `{"kind": "inline", "must_understand": false, "metadata": {path: document, …}}`. Another kind need not be understood.
fn consolidated(document: &Json) -> Result<Option<ConsolidatedMetadata>, DocumentError> {
    let Some(consolidated) = document.get(CONSOLIDATED).filter(|consolidated| !consolidated.is_null()) else {
        return Ok(None);
    };
    let description = match consolidated.is_object() {
        true => json::description(&consolidated, &["kind", "must_understand"])?,
        false => Value::Null,
    };
    let place = JsonPath { value: &description, pointer: pointer_to("", CONSOLIDATED) };
    let kind = place.required("kind")?;
    match kind.text()? {
        "inline" => {
            let pointer = place.pointer_to("metadata");
            let missing = || DocumentError::Missing { pointer: pointer.clone() };
            let metadata = consolidated.get("metadata").ok_or_else(missing)?;
            ConsolidatedMetadata::parse(metadata, &pointer, "/zarr.json").map(Some)
        }
        _ if parts::must_understand(&place)? => Err(kind.invalid("is not \"inline\"")),
        _ => Ok(None),
    }
}
