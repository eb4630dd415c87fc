//! The parts of documents that dialects have in common.

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
    text::pointer_to,
};

/// In which order the elements of a chunk are, in v2 and the draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemoryOrder {
    /// The last index changes fastest.
    C,
    /// The first index changes fastest.
    F,
}

/// The type of elements, and how v2 and the draft store them.
pub(super) struct StoredElements<'a> {
    pub(super) data_type: &'a DataType,
    pub(super) byte_order: &'a StoredOrder,
    pub(super) memory_order: MemoryOrder,
    pub(super) rank: usize,
}

/// Reads a shape, whose length is checked first.
pub(super) fn shape(place: &JsonPath<'_>) -> Result<Vec<u64>, DocumentError> {
    let rank = place.list()?.len();
    if rank > MAX_RANK {
        return Err(place.invalid(format!("has {rank} dimensions, more than {MAX_RANK}")));
    }
    place.items()?.map(|extent| extent.unsigned()).collect()
}

/// Fails unless a list has one entry per dimension.
pub(super) fn check_rank(place: &JsonPath<'_>, rank: usize) -> Result<(), DocumentError> {
    match place.list()?.len() {
        found if found == rank => Ok(()),
        found => Err(place.invalid(format!("has {found} entries for {rank} dimensions"))),
    }
}

/// Reads the shape of regular chunks. Along dimensions of extent 0, for which zarr-python writes chunks of length 0, such a chunk has the length that
/// `units` has for the dimension, or 1.
pub(super) fn chunk_shape(place: &JsonPath<'_>, shape: &[u64], units: &[u64]) -> Result<Vec<u64>, DocumentError> {
    check_rank(place, shape.len())?;
    let units = units.iter().copied().chain(iter::repeat(1));
    let dimensions = place.items()?.zip(shape).zip(units);
    let length = |((place, &extent), unit): ((JsonPath<'_>, &u64), u64)| match (place.unsigned()?, extent) {
        (0, 0) => Ok(unit),
        (0, _) => Err(place.invalid("is 0")),
        (length, _) => Ok(length),
    };
    dimensions.map(length).collect()
}

/// The grid of regular chunks.
pub(super) fn regular(place: &JsonPath<'_>, chunk_shape: &[u64]) -> Result<ChunkGrid, DocumentError> {
    ChunkGrid::regular(chunk_shape).ok_or_else(|| place.invalid("has a chunk that is larger than any array"))
}

pub(super) fn separator(place: &JsonPath<'_>) -> Result<Separator, DocumentError> {
    match place.text()? {
        "/" => Ok(Separator::Slash),
        "." => Ok(Separator::Dot),
        _ => Err(place.invalid("is neither \"/\" nor \".\"")),
    }
}

/// The attributes of a document, by default an empty object.
pub(super) fn attributes(document: &Json) -> Result<Json, DocumentError> {
    match document.get(ATTRIBUTES) {
        None => Ok(Json::empty_object()),
        Some(attributes) if attributes.is_object() => Ok(attributes),
        Some(_) => Err(not_an_object(ATTRIBUTES)),
    }
}

/// The attributes of a document; `null` means none, too.
pub(super) fn attributes_or_null(document: &Json) -> Result<Json, DocumentError> {
    match document.get(ATTRIBUTES) {
        Some(attributes) if attributes.is_null() => Ok(Json::empty_object()),
        _ => attributes(document),
    }
}

fn not_an_object(name: &str) -> DocumentError {
    DocumentError::Invalid { pointer: pointer_to("", name), reason: "is not an object".to_owned() }
}

/// The members of a configuration, if it is present.
pub(super) fn configuration(place: Option<JsonPath<'_>>) -> Result<Map<String, Value>, DocumentError> {
    place.map_or_else(|| Ok(Map::new()), |place| place.object().cloned())
}

/// The attribute in which xarray keeps the names of the dimensions.
pub(crate) const XARRAY_NAMES: &str = "_ARRAY_DIMENSIONS";

/// The names of dimensions that xarray keeps in the attributes of dialects that have none themselves. What is no list of as many strings as there are
/// dimensions is something else of the user's.
pub(super) fn xarray_names(attributes: &Json, rank: usize) -> Vec<Option<String>> {
    let names = attributes.get(XARRAY_NAMES).filter(|names| names.kind() == Kind::Array);
    let names = names.filter(|names| names.items().take(rank.saturating_add(1)).count() == rank);
    let names = names.and_then(|names| names.items().map(|name| Some(Some(name.to_text()?))).collect());
    names.unwrap_or_else(|| vec![None; rank])
}

pub(super) fn fill_value(
    place: &JsonPath<'_>,
    data_type: &DataType,
    dialect: Dialect,
    byte_order: &StoredOrder,
) -> Result<Vec<u8>, DocumentError> {
    let element = data_type
        .stored_fill_value(place.value, dialect, byte_order)
        .map_err(|source| DocumentError::FillValue { pointer: place.pointer.clone(), source })?;
    if element.len() > MAX_ELEMENT_SIZE {
        return Err(place.invalid(format!("is longer than {MAX_ELEMENT_SIZE} bytes")));
    }
    Ok(element)
}

/// Reads `C` or `F`.
pub(super) fn memory_order(place: &JsonPath<'_>) -> Result<MemoryOrder, DocumentError> {
    match place.text()? {
        "C" => Ok(MemoryOrder::C),
        "F" => Ok(MemoryOrder::F),
        _ => Err(place.invalid("is neither \"C\" nor \"F\"")),
    }
}

/// Reads a codec as numcodecs configures it: `{"id": "zlib", "level": 1}`.
pub(super) fn numcodecs(place: &JsonPath<'_>) -> Result<CodecSpec, DocumentError> {
    let id = place.required("id")?.text()?;
    let mut configuration = place.object()?.clone();
    configuration.shift_remove("id");
    Ok(CodecSpec::numcodecs(id, configuration))
}

/// Reads a list of codecs, each with `codec`; `None` is an empty one.
pub(super) fn codecs(
    place: Option<JsonPath<'_>>,
    codec: impl Fn(&JsonPath<'_>) -> Result<CodecSpec, DocumentError>,
) -> Result<Vec<CodecSpec>, DocumentError> {
    let Some(place) = place else { return Ok(Vec::new()) };
    if place.list()?.len() > MAX_CODECS {
        return Err(place.invalid(format!("has more than {MAX_CODECS} codecs")));
    }
    place.items()?.map(|place| codec(&place)).collect()
}

/// The chain of an array of v2 or the draft: what puts the elements in order, what makes bytes of them, and then the codecs that the document names.
/// Of elements of variable length the first of those makes the bytes; `None` where there is none.
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

/// The codec that makes bytes of elements that have these words.
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

/// An object of these members.
pub(crate) fn object<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Reads the `must_understand` of an extension; it is true where nothing is said.
pub(super) fn must_understand(extension: &JsonPath<'_>) -> Result<bool, DocumentError> {
    let Some(place) = extension.member("must_understand")? else { return Ok(true) };
    place.value.as_bool().ok_or_else(|| place.invalid("is neither true nor false"))
}
