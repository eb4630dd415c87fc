//! Members of documents that several dialects share.

use std::iter;

use serde_json::{Map, Value, json};

use super::{DocumentError, JsonPath, json::ATTRIBUTES};
use crate::{
    Dialect,
    chunk_keys::Separator,
    codecs::CodecSpec,
    data_type::{DataType, Layout, StoredOrder, WordRun},
    grid::ChunkGrid,
    json::{Json, Kind},
    limits::{MAX_CODECS, MAX_ELEMENT_SIZE, MAX_RANK},
    model::XARRAY_NAMES,
    text::pointer_to,
};

/// The members in which netCDF-C has described arrays, with those of references to dimensions.
const NCZARR_ARRAYS: [(&str, &str); 3] = [
    ("_NCZARR_ARRAY", "dimrefs"),
    ("_NCZARR_ARRAY", "dimension_references"),
    ("_nczarr_array", "dimension_references"),
];

/// The memory order of a chunk's elements, in v2 and the draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemoryOrder {
    /// The last index varies fastest.
    C,
    /// The first index varies fastest.
    F,
}

/// The data type of elements with the orders in which v2 and the draft store them.
pub(super) struct StoredElements<'a> {
    pub(super) data_type: &'a DataType,
    pub(super) byte_order: &'a StoredOrder,
    pub(super) memory_order: MemoryOrder,
    pub(super) rank: usize,
}

/// Reads a shape of at most [`MAX_RANK`] dimensions.
pub(super) fn shape(path: &JsonPath<'_>) -> Result<Vec<u64>, DocumentError> {
    let rank = path.list()?.len();
    if rank > MAX_RANK {
        return Err(path.invalid(format!("has {rank} dimensions, more than {MAX_RANK}")));
    }
    path.items()?.map(|extent| extent.unsigned()).collect()
}

/// Fails unless a list has one entry per dimension.
pub(super) fn check_rank(path: &JsonPath<'_>, rank: usize) -> Result<(), DocumentError> {
    match path.list()?.len() {
        found if found == rank => Ok(()),
        found => Err(path.invalid(format!("has {found} entries for {rank} dimensions"))),
    }
}

/// Reads the shape of regular chunks. zarr-python writes chunks of length 0 for dimensions of extent 0; they get the
/// length in `units`, or 1.
pub(super) fn chunk_shape(path: &JsonPath<'_>, shape: &[u64], units: &[u64]) -> Result<Vec<u64>, DocumentError> {
    check_rank(path, shape.len())?;
    let units = units.iter().copied().chain(iter::repeat(1));
    let dimensions = path.items()?.zip(shape).zip(units);
    let length = |((path, &extent), unit): ((JsonPath<'_>, &u64), u64)| match (path.unsigned()?, extent) {
        (0, 0) => Ok(unit),
        (0, _) => Err(path.invalid("is 0")),
        (length, _) => Ok(length),
    };
    dimensions.map(length).collect()
}

/// Creates a regular chunk grid.
pub(super) fn regular(path: &JsonPath<'_>, chunk_shape: &[u64]) -> Result<ChunkGrid, DocumentError> {
    ChunkGrid::regular(chunk_shape).ok_or_else(|| path.invalid("has a chunk beyond the maximum extent"))
}

pub(super) fn separator(path: &JsonPath<'_>) -> Result<Separator, DocumentError> {
    match path.text()? {
        "/" => Ok(Separator::Slash),
        "." => Ok(Separator::Dot),
        _ => Err(path.invalid("is neither \"/\" nor \".\"")),
    }
}

/// The attributes of a document; by default an empty object.
pub(super) fn attributes(document: &Json) -> Result<Json, DocumentError> {
    match document.get(ATTRIBUTES) {
        None => Ok(Json::empty_object()),
        Some(attributes) if attributes.is_object() => Ok(attributes),
        Some(_) => Err(not_an_object(ATTRIBUTES)),
    }
}

/// The attributes of a document; an empty object if they are missing or `null`.
pub(super) fn attributes_or_null(document: &Json) -> Result<Json, DocumentError> {
    match document.get(ATTRIBUTES) {
        Some(attributes) if attributes.is_null() => Ok(Json::empty_object()),
        _ => attributes(document),
    }
}

fn not_an_object(name: &str) -> DocumentError {
    DocumentError::Invalid { pointer: pointer_to("", name), reason: "is not an object".to_owned() }
}

/// The members of a configuration; empty if it is missing.
pub(super) fn configuration(path: Option<JsonPath<'_>>) -> Result<Map<String, Value>, DocumentError> {
    path.map_or_else(|| Ok(Map::new()), |path| path.object().cloned())
}

/// The dimension names that xarray stores in the attributes of v2 and the draft. An attribute other than a list with
/// one string per dimension belongs to the user.
pub(super) fn xarray_names(attributes: &Json, rank: usize) -> Vec<Option<String>> {
    let names = attributes.get(XARRAY_NAMES).filter(|names| names.kind() == Kind::Array);
    let names = names.filter(|names| names.items().take(rank.saturating_add(1)).count() == rank);
    let names = names.and_then(|names| names.items().map(|name| Some(Some(name.to_text()?))).collect());
    names.unwrap_or_else(|| vec![None; rank])
}

/// The dimension names of a v2 array: xarray's, or else those that NCZarr has in the document (4.8) or in the
/// attributes.
pub(super) fn dimension_names_v2(document: &Json, attributes: &Json, rank: usize) -> Vec<Option<String>> {
    let names = xarray_names(attributes, rank);
    if attributes.get(XARRAY_NAMES).is_some() {
        return names;
    }
    let found = [document, attributes].into_iter().find_map(|members| {
        NCZARR_ARRAYS.iter().find_map(|(array, references)| nczarr_names(&members.get(array)?.get(references)?, rank))
    });
    found.unwrap_or(names)
}

/// The last part of each reference, such as `/group/lat`, if there is one per dimension.
fn nczarr_names(references: &Json, rank: usize) -> Option<Vec<Option<String>>> {
    let is_list = references.kind() == Kind::Array;
    if !is_list || references.items().take(rank.saturating_add(1)).count() != rank {
        return None;
    }
    let name = |reference: Json| {
        let reference = reference.to_text()?;
        let name = reference.rsplit('/').next().filter(|name| !name.is_empty())?;
        Some(Some(name.to_owned()))
    };
    references.items().map(name).collect()
}

pub(super) fn fill_value(
    path: &JsonPath<'_>,
    data_type: &DataType,
    dialect: Dialect,
    byte_order: &StoredOrder,
) -> Result<Vec<u8>, DocumentError> {
    let element = data_type
        .stored_fill_value(path.value, dialect, byte_order)
        .map_err(|source| DocumentError::FillValue { pointer: path.pointer.clone(), source })?;
    if element.len() > MAX_ELEMENT_SIZE {
        return Err(path.invalid(format!("is longer than {MAX_ELEMENT_SIZE} bytes")));
    }
    Ok(element)
}

/// Reads `C` or `F`.
pub(super) fn memory_order(path: &JsonPath<'_>) -> Result<MemoryOrder, DocumentError> {
    match path.text()? {
        "C" => Ok(MemoryOrder::C),
        "F" => Ok(MemoryOrder::F),
        _ => Err(path.invalid("is neither \"C\" nor \"F\"")),
    }
}

/// Reads a codec in the form of numcodecs: `{"id": "zlib", "level": 1}`.
pub(super) fn numcodecs(path: &JsonPath<'_>) -> Result<CodecSpec, DocumentError> {
    let id = path.required("id")?.text()?;
    let mut configuration = path.object()?.clone();
    configuration.shift_remove("id");
    Ok(CodecSpec::numcodecs(id, configuration))
}

/// Reads a list of codecs, each with `codec`; `None` is an empty list.
pub(super) fn codecs(
    path: Option<JsonPath<'_>>,
    codec: impl Fn(&JsonPath<'_>) -> Result<CodecSpec, DocumentError>,
) -> Result<Vec<CodecSpec>, DocumentError> {
    let Some(path) = path else { return Ok(Vec::new()) };
    if path.list()?.len() > MAX_CODECS {
        return Err(path.invalid(format!("has more than {MAX_CODECS} codecs")));
    }
    path.items()?.map(|path| codec(&path)).collect()
}

/// The codec chain of an array of v2 or the draft: memory order, array-to-bytes codec, and the listed codecs. The first
/// listed codec is the array-to-bytes codec of elements of variable length; `None` if it is missing.
pub(super) fn chain(stored: &StoredElements<'_>, named: Vec<CodecSpec>) -> Option<Vec<CodecSpec>> {
    let mut chain = Vec::new();
    if stored.memory_order == MemoryOrder::F && stored.rank > 1 {
        let order: Vec<usize> = (0..stored.rank).rev().collect();
        chain.push(CodecSpec::v3("transpose", object([("order", json!(order))])));
    }
    match stored.data_type.layout() {
        Layout::Variable if named.is_empty() => return None,
        Layout::Variable => {}
        Layout::Fixed(layout) => chain.push(to_bytes(stored.byte_order, &layout.words)),
    }
    chain.extend(named);
    Some(chain)
}

/// The `bytes` codec for elements with these words.
fn to_bytes(order: &StoredOrder, words: &[WordRun]) -> CodecSpec {
    let endian = match order {
        _ if words.is_empty() => return CodecSpec::v3("bytes", Map::new()),
        StoredOrder::Little => "little",
        StoredOrder::Big => "big",
        StoredOrder::Mixed(big) => {
            let runs: Vec<_> = big.iter().map(|run| [run.offset, run.width, run.count]).collect();
            return CodecSpec::model(CodecSpec::MIXED_ENDIAN, object([("big", json!(runs))]));
        }
    };
    CodecSpec::v3("bytes", object([("endian", json!(endian))]))
}

/// Creates an object.
pub(crate) fn object<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Reads the `must_understand` of an extension, by default true.
pub(super) fn must_understand(extension: &JsonPath<'_>) -> Result<bool, DocumentError> {
    let Some(path) = extension.member("must_understand")? else { return Ok(true) };
    path.value.as_bool().ok_or_else(|| path.invalid("is neither true nor false"))
}
