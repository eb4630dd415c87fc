//! Documents of v2: `.zarray`, `.zgroup`, `.zattrs` and `.zmetadata`.
//!
//! Specification: [Zarr v2](https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html). Unknown members are allowed and
//! preserved.

use bytes::Bytes;

use super::{ConsolidatedMetadata, DocumentError, GroupModel, JsonPath, json, parts};
use crate::{
    ArrayModel, Dialect,
    chunk_keys::{ChunkKeyEncoding, ChunkKeyForm, Separator},
    codecs::CodecSpec,
    data_type::{self, V2Context},
    json::Json,
    text::truncated,
};

/// The members of an array's document, without its attributes.
pub(crate) const ARRAY_MEMBERS: &[&str] =
    &["zarr_format", "shape", "chunks", "dtype", "compressor", "fill_value", "order", "filters", "dimension_separator"];

/// Reads the `.zarray` of an array and its `.zattrs`, if present.
///
/// All members of the specification are required except `compressor` and `filters`, whose absence means none as in
/// zarr-python 3, and `dimension_separator`, which was added later. The dimension names are those of xarray's attribute
/// `_ARRAY_DIMENSIONS`, or else those of netCDF.
pub fn array(zarray: impl Into<Bytes>, zattrs: Option<Bytes>) -> Result<ArrayModel, DocumentError> {
    read_array(json::read(zarray)?, attributes(zattrs)?)
}

/// Reads the `.zgroup` of a group and its `.zattrs`, if present.
pub fn group(zgroup: impl Into<Bytes>, zattrs: Option<Bytes>) -> Result<GroupModel, DocumentError> {
    read_group(json::read(zgroup)?, attributes(zattrs)?)
}

/// Reads a `.zarray` with these attributes.
pub fn read_array(document: Json, attributes: Json) -> Result<ArrayModel, DocumentError> {
    let description = json::description(&document, ARRAY_MEMBERS)?;
    let root = JsonPath::root(&description);
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
    let separator = separator.map_or(Ok(Separator::Dot), |path| parts::separator(&path))?;
    let stored =
        parts::StoredElements { data_type: &data_type, byte_order: &byte_order, memory_order, rank: shape.len() };
    let codecs = parts::chain(&stored, with_compressor(filters, root.member_or_null("compressor")?)?)
        .ok_or_else(|| dtype.invalid("has elements of variable length, but no array-to-bytes filter"))?;
    Ok(ArrayModel {
        dialect: Dialect::V2,
        dimension_names: parts::dimension_names_v2(&document, &attributes, shape.len()),
        view_offset: vec![0; shape.len()],
        shape,
        data_type,
        fill_value,
        grid,
        chunk_keys: ChunkKeyEncoding { form: ChunkKeyForm::V2, separator },
        chunk_prefix: String::new(),
        codecs,
        attributes,
        extensions: Vec::new(),
        document,
        bounded_times: None,
    })
}

/// Reads a `.zgroup` with these attributes.
pub fn read_group(document: Json, attributes: Json) -> Result<GroupModel, DocumentError> {
    check_format(&JsonPath::root(&json::description(&document, &["zarr_format"])?))?;
    Ok(GroupModel { dialect: Dialect::V2, attributes, extensions: Vec::new(), consolidated: None, document })
}

/// Reads a `.zmetadata`, zarr-python's
/// [consolidated metadata](https://zarr.readthedocs.io/en/stable/user-guide/consolidated_metadata.html).
pub fn consolidated(zmetadata: impl Into<Bytes>) -> Result<ConsolidatedMetadata, DocumentError> {
    let document = json::read(zmetadata)?;
    let description = json::description(&document, &["zarr_consolidated_format"])?;
    let format = JsonPath::root(&description).required("zarr_consolidated_format")?;
    if format.value != 1 {
        return Err(format.invalid("is not 1"));
    }
    let missing = || DocumentError::Missing { pointer: "/metadata".to_owned() };
    ConsolidatedMetadata::parse(document.get("metadata").ok_or_else(missing)?, "/metadata", "")
}

fn check_format(root: &JsonPath<'_>) -> Result<(), DocumentError> {
    let format = root.required("zarr_format")?;
    if format.value == 2 {
        return Ok(());
    }
    Err(DocumentError::WrongFormat { expected: "2", found: truncated(&format.value.to_string()) })
}

fn with_compressor(mut filters: Vec<CodecSpec>, path: Option<JsonPath<'_>>) -> Result<Vec<CodecSpec>, DocumentError> {
    if let Some(path) = path {
        filters.push(parts::numcodecs(&path)?);
    }
    Ok(filters)
}

fn attributes(zattrs: Option<Bytes>) -> Result<Json, DocumentError> {
    let Some(zattrs) = zattrs else { return Ok(Json::empty_object()) };
    json::read(zattrs).map_err(|source| DocumentError::Attributes(Box::new(source)))
}
