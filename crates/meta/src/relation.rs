//! Comparison of the documents that v2 and v3 have at one path.
//!
//! A node may have documents of both dialects over the same chunks, as a conversion in place makes them. Programs that
//! know one dialect change one of the documents, so the two can disagree. Which changes of the node are safe then
//! depends on how they do: see [`DialectRelation`].

#[cfg(test)]
mod tests;

use std::{fmt, str::FromStr};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use crate::{
    ArrayModel, Dialect,
    chunk_keys::ChunkKeyForm,
    convert::{self, ArrayContext, ChunkPolicy},
    documents::{GroupModel, v2, v3, write::StoredNode},
    json::{Change, Json},
    model::XARRAY_NAMES,
};

/// The attribute in which xarray stores the missing value of an array of v3; in v2 that is the fill value.
const MISSING_VALUE: &str = "_FillValue";

/// The relation between the documents of v2 and v3 at one path.
///
/// The order is that of severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DialectRelation {
    /// They describe the same node. The notation of missing values, `_ARRAY_DIMENSIONS` against `dimension_names`, and
    /// the spelling of codecs are no difference.
    Same,
    /// They describe two arrays whose chunks have different keys. Each is written alone.
    Independent,
    /// Attributes, dimension names, or the start of a view differ.
    Attributes,
    /// The shapes differ.
    Shape,
    /// The data type, order, chunk grid, codecs or fill value differ over the same chunk keys, or one document
    /// describes a group and the other one an array.
    Layout,
    /// One of the documents cannot be read.
    Unreadable,
}

/// A text is not the name of a [`DialectRelation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a relation of dialects is same, independent, attributes, shape, layout or unreadable")]
pub struct RelationError;

/// The node that the documents of one dialect describe.
#[derive(Clone, Copy, Debug)]
pub enum ComparedNode<'a> {
    /// An array.
    Array(&'a ArrayModel),
    /// A group.
    Group(&'a GroupModel),
    /// The documents cannot be read.
    Unreadable,
}

impl DialectRelation {
    /// All relations, the least severe one first.
    pub const ALL: [Self; 6] =
        [Self::Same, Self::Independent, Self::Attributes, Self::Shape, Self::Layout, Self::Unreadable];

    /// Its name, such as `shape`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Independent => "independent",
            Self::Attributes => "attributes",
            Self::Shape => "shape",
            Self::Layout => "layout",
            Self::Unreadable => "unreadable",
        }
    }

    /// Compares the documents of v2 and v3 at one path, in either order.
    pub fn between(one: ComparedNode<'_>, other: ComparedNode<'_>) -> Self {
        match (one, other) {
            (ComparedNode::Unreadable, _) | (_, ComparedNode::Unreadable) => Self::Unreadable,
            (ComparedNode::Array(one), ComparedNode::Array(other)) => compare_arrays(one, other),
            (ComparedNode::Group(one), ComparedNode::Group(other)) => {
                match has_equal_attributes(&one.attributes, &other.attributes) {
                    true => Self::Same,
                    false => Self::Attributes,
                }
            }
            (ComparedNode::Array(_), ComparedNode::Group(_)) | (ComparedNode::Group(_), ComparedNode::Array(_)) => {
                Self::Layout
            }
        }
    }
}

impl fmt::Display for DialectRelation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DialectRelation {
    type Err = RelationError;

    fn from_str(text: &str) -> Result<Self, RelationError> {
        Self::ALL.into_iter().find(|relation| relation.name() == text).ok_or(RelationError)
    }
}

/// The shape of two arrays that contains the other one; `None` if neither does.
pub fn containing_shape<'a>(one: &'a [u64], other: &'a [u64]) -> Option<&'a [u64]> {
    let contains = |larger: &[u64], smaller: &[u64]| {
        larger.len() == smaller.len() && larger.iter().zip(smaller).all(|(larger, smaller)| larger >= smaller)
    };
    match () {
        () if contains(one, other) => Some(one),
        () if contains(other, one) => Some(other),
        () => None,
    }
}

/// True if two arrays at one path have the same fill value, or differ only as the notations of missing values do, so
/// that a missing chunk may read differently in the two dialects.
pub fn fill_values_agree(one: &ArrayModel, other: &ArrayModel) -> bool {
    one.fill_value == other.fill_value && one.fill_value_is_agreed() == other.fill_value_is_agreed()
}

fn compare_arrays(one: &ArrayModel, other: &ArrayModel) -> DialectRelation {
    if has_disjoint_keys(one, other) {
        return DialectRelation::Independent;
    }
    if one.shape.len() != other.shape.len() || !has_equal_layout(one, other) {
        return DialectRelation::Layout;
    }
    if one.shape != other.shape {
        return DialectRelation::Shape;
    }
    let has_equal_names = one.dimension_names == other.dimension_names && one.view_offset == other.view_offset;
    match has_equal_names && has_equal_attributes(&one.attributes, &other.attributes) {
        true => DialectRelation::Same,
        false => DialectRelation::Attributes,
    }
}

/// True if no key is that of a chunk of both arrays.
fn has_disjoint_keys(one: &ArrayModel, other: &ArrayModel) -> bool {
    let (keys, rank) = (one.chunk_keys, one.shape.len());
    if keys.form != other.chunk_keys.form {
        return true;
    }
    // The form `v2` has the key `0` for an array without dimensions, and for the first chunk of one dimension.
    let separated = match keys.form {
        ChunkKeyForm::V2 => rank > 1 || other.shape.len() > 1,
        ChunkKeyForm::Default | ChunkKeyForm::Draft => rank > 0 || !other.shape.is_empty(),
    };
    separated && (rank != other.shape.len() || keys.separator != other.chunk_keys.separator)
}

/// True if two arrays store elements in the same way, be it in the notations of two dialects.
fn has_equal_layout(one: &ArrayModel, other: &ArrayModel) -> bool {
    if !has_equal_fill(one, other) {
        return false;
    }
    let is_equal = |one: &ArrayModel, other: &ArrayModel| {
        one.data_type == other.data_type && one.grid == other.grid && one.codecs == other.codecs
    };
    is_equal(one, other)
        || translated(one, other.dialect).is_some_and(|one| is_equal(&one, other))
        || translated(other, one.dialect).is_some_and(|other| is_equal(one, &other))
}

/// True if two fill values are equal, or the one of v2 is `null`, for which elements of missing chunks are undefined, or
/// the missing value of the one of v3.
fn has_equal_fill(one: &ArrayModel, other: &ArrayModel) -> bool {
    if one.fill_value == other.fill_value {
        return true;
    }
    let (v2, v3) = if one.dialect == Dialect::V2 { (one, other) } else { (other, one) };
    if !v2.has_fill_value() {
        return true;
    }
    let number = |json: &Json| json.to_value().ok().and_then(|value| number(&value));
    let missing = v3.attributes.get(MISSING_VALUE).and_then(|missing| number(&missing));
    let fill = v2.document.get("fill_value").and_then(|fill| number(&fill));
    match (missing, fill) {
        (Some(missing), Some(fill)) => missing == fill || missing.is_nan() && fill.is_nan(),
        _ => false,
    }
}

/// A number, or one that is the base64 of a little-endian float64, as xarray writes missing values.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) if text == "NaN" => Some(f64::NAN),
        Value::String(text) if text == "Infinity" => Some(f64::INFINITY),
        Value::String(text) if text == "-Infinity" => Some(f64::NEG_INFINITY),
        Value::String(text) => {
            let bytes = BASE64_STANDARD.decode(text.get(..12)?).ok()?;
            Some(f64::from_le_bytes(bytes.try_into().ok()?)).filter(|_| text.len() == 12)
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The model of an array as another dialect has it, over the same chunks; `None` if it has no such array.
fn translated(model: &ArrayModel, to: Dialect) -> Option<ArrayModel> {
    let document = convert::array(model, to, ChunkPolicy::Preserve, ArrayContext::default()).ok()?.document;
    match to {
        Dialect::V2 => {
            let StoredNode { document, attributes } = StoredNode::from_node_document(to, &document);
            v2::read_array(document, attributes.unwrap_or_default()).ok()
        }
        Dialect::V3 => match v3::read(document).ok()? {
            v3::Node::Array(model) => Some(*model),
            v3::Node::Group(_) => None,
        },
        Dialect::Draft => None,
    }
}

/// True if attributes are equal but for those whose notation depends on the dialect.
fn has_equal_attributes(one: &Json, other: &Json) -> bool {
    let general = |attributes: &Json| {
        let others = [XARRAY_NAMES, MISSING_VALUE].iter();
        others.fold(attributes.clone(), |attributes, name| attributes.with(name, Change::Remove))
    };
    general(one).is_equivalent(&general(other))
}
