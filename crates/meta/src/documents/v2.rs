//! Documents of v2: `.zarray`, `.zgroup`, `.zattrs` and `.zmetadata`.
//!
//! Specification: [Zarr v2](https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html). Members that it does not name are allowed and kept.

use serde_json::{Map, Value};

use super::{Consolidated, DocumentError, GroupModel, Place, json, parts};
use crate::{
    ArrayModel, Dialect,
    chunk_keys::{ChunkKeyEncoding, ChunkKeyForm, Separator},
    codecs::CodecSpec,
    data_type::{self, V2Context},
    text::shown,
};

/// Reads the `.zarray` of an array and the `.zattrs` beside it, if there is one.
///
/// All members that the specification names have to be there, except for `filters` and `dimension_separator`: the first is what some writers
/// leave out, and the second was added later. The names of the dimensions are those of xarray's attribute `_ARRAY_DIMENSIONS`.
pub fn array(zarray: &[u8], zattrs: Option<&[u8]>) -> Result<ArrayModel, DocumentError> {
    read_array(json::read(zarray)?, attributes(zattrs)?)
}

/// Reads the `.zgroup` of a group and the `.zattrs` beside it, if there is one.
pub fn group(zgroup: &[u8], zattrs: Option<&[u8]>) -> Result<GroupModel, DocumentError> {
    read_group(json::read(zgroup)?, attributes(zattrs)?)
}

/// Reads what a `.zarray` says, beside these attributes.
pub fn read_array(document: Value, attributes: Map<String, Value>) -> Result<ArrayModel, DocumentError> {
    let root = Place::root(&document);
    check_format(&root)?;
    let shape = parts::shape(&root.required("shape")?)?;
    let chunks = root.required("chunks")?;
    let grid = parts::regular(&chunks, &parts::chunk_shape(&chunks, &shape, &[])?)?;
    let filters = parts::codecs(root.member_or_null("filters")?, parts::numcodecs)?;
    let dtype = root.required("dtype")?;
    let context = V2Context { object_codec: filters.first() };
    let (data_type, byte_order) = data_type::parse_v2(dtype.value, context)
        .map_err(|source| DocumentError::DataType { pointer: dtype.pointer.clone(), source })?;
    let fill_value = parts::fill_value(&root.required("fill_value")?, &data_type, Dialect::V2, &byte_order)?;
    let memory_order = parts::memory_order(&root.required("order")?)?;
    let separator = root.member_or_null("dimension_separator")?;
    let separator = separator.map_or(Ok(Separator::Dot), |place| parts::separator(&place))?;
    let stored = parts::Stored { data_type: &data_type, byte_order: &byte_order, memory_order, rank: shape.len() };
    let codecs = parts::chain(&stored, with_compressor(filters, &root.required("compressor")?)?)
        .ok_or_else(|| dtype.invalid("has elements of variable length and no filter that makes bytes of them"))?;
    Ok(ArrayModel {
        dialect: Dialect::V2,
        dimension_names: parts::xarray_names(&attributes, shape.len()),
        origin: vec![0; shape.len()],
        shape,
        data_type,
        fill_value,
        grid,
        chunk_keys: ChunkKeyEncoding { form: ChunkKeyForm::V2, separator },
        chunk_prefix: String::new(),
        codecs,
        attributes,
        extensions: Vec::new(),
        document: json::into_object(document),
    })
}

/// Reads what a `.zgroup` says, beside these attributes.
pub fn read_group(document: Value, attributes: Map<String, Value>) -> Result<GroupModel, DocumentError> {
    check_format(&Place::root(&document))?;
    Ok(GroupModel {
        dialect: Dialect::V2,
        attributes,
        extensions: Vec::new(),
        consolidated: None,
        document: json::into_object(document),
    })
}

/// Reads a `.zmetadata`, zarr-python's
/// [consolidated metadata](https://zarr.readthedocs.io/en/stable/user-guide/consolidated_metadata.html).
pub fn consolidated(zmetadata: &[u8]) -> Result<Consolidated, DocumentError> {
    let document = json::read(zmetadata)?;
    let root = Place::root(&document);
    let format = root.required("zarr_consolidated_format")?;
    if format.value != 1 {
        return Err(format.invalid("is not 1"));
    }
    Consolidated::parse(&root.required("metadata")?, "")
}

fn check_format(root: &Place<'_>) -> Result<(), DocumentError> {
    let format = root.required("zarr_format")?;
    if format.value == 2 {
        return Ok(());
    }
    Err(DocumentError::Format { expected: "2", found: shown(&format.value.to_string()) })
}

fn with_compressor(mut filters: Vec<CodecSpec>, place: &Place<'_>) -> Result<Vec<CodecSpec>, DocumentError> {
    if !place.value.is_null() {
        filters.push(parts::numcodecs(place)?);
    }
    Ok(filters)
}

fn attributes(zattrs: Option<&[u8]>) -> Result<Map<String, Value>, DocumentError> {
    let Some(zattrs) = zattrs else { return Ok(Map::new()) };
    let document = json::read(zattrs).map_err(|source| DocumentError::Attributes(Box::new(source)))?;
    Ok(json::into_object(document))
}
