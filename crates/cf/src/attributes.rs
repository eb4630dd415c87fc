//! The attributes of the conventions.

use base64::Engine;
use zarrd_meta::{
    ArrayModel, Dialect,
    data_type::Number,
    json::{Json, Kind},
};

use crate::error::{CfError, MAX_ATTRIBUTE_SIZE, MAX_FILL_VALUES};

const FILL_VALUE: &str = "_FillValue";
const MISSING_VALUE: &str = "missing_value";
const SCALE_FACTOR: &str = "scale_factor";
const ADD_OFFSET: &str = "add_offset";
const UNSIGNED: &str = "_Unsigned";
const MAX_EXCERPT_CHARS: usize = 48;

/// True if the elements of an array are packed or some mean missing, so that a computation on the stored elements would
/// be wrong: if it is [masked](ArrayModel::is_masked) or has `scale_factor`, `add_offset` or `_Unsigned`, or a
/// `_FillValue` or `missing_value` that is not only NaN.
pub fn is_undecoded(model: &ArrayModel) -> bool {
    let ArrayModel { attributes, data_type, dialect, .. } = model;
    let present = |name| attributes.get(name).is_some_and(|value| !value.is_null());
    if model.is_masked() || [SCALE_FACTOR, ADD_OFFSET, UNSIGNED].into_iter().any(present) {
        return true;
    }
    [FILL_VALUE, MISSING_VALUE].into_iter().filter(|name| present(name)).any(|name| {
        let scalars = read_scalars(attributes, name);
        !scalars.is_ok_and(|scalars| scalars.iter().all(|scalar| is_nan(scalar, name, data_type.number(), *dialect)))
    })
}

/// True if the attributes are those of a coordinate whose values increase northward: latitudes, or others of a map.
pub fn is_northward(attributes: &Json) -> bool {
    let text = |name| attribute(attributes, name).ok().flatten().and_then(|value| value.to_text());
    let units = text("units").unwrap_or_default().to_ascii_lowercase();
    let is_latitude =
        matches!(units.as_str(), "degrees_north" | "degree_north" | "degrees_n" | "degree_n" | "degreesn" | "degreen");
    let standard_name = text("standard_name").unwrap_or_default();
    is_latitude
        || matches!(standard_name.as_str(), "latitude" | "projection_y_coordinate")
        || text("axis").is_some_and(|axis| axis == "Y")
}

/// A JSON value, as Python reads it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Integer(i128),
    Float(f64),
    Text(String),
    Other,
}

/// A factor or an offset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Factor {
    Integer(i64),
    Float(f64),
}

/// The fill values of an array.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FillValues {
    /// Whole numbers, also beyond the data type's range.
    pub(crate) integers: Vec<i128>,
    /// Other numbers, infinities included.
    pub(crate) floats: Vec<f64>,
    /// True if there are texts, which equal no number.
    pub(crate) texts: bool,
    /// True if an attribute has only NaN, which has an effect on the type of the result.
    pub(crate) nan: bool,
}

/// The attributes of an array of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Attributes {
    pub(crate) fill_values: FillValues,
    pub(crate) scale_factor: Option<Factor>,
    pub(crate) add_offset: Option<Factor>,
    /// True if signed integers are to be taken as unsigned ones, false for the opposite.
    pub(crate) unsigned: Option<bool>,
    pub(crate) units: Option<String>,
    pub(crate) calendar: Option<String>,
    pub(crate) dtype: Option<String>,
}

impl Attributes {
    /// Reads the attributes of an array. `fill_value` is that of a dialect in which it has the meaning of `_FillValue`.
    pub(crate) fn read(
        attributes: &Json,
        number: Number,
        fill_value: Option<Scalar>,
        dialect: Dialect,
    ) -> Result<Self, CfError> {
        let mut fill_values = FillValues::default();
        fill_values.add(&read_scalars(attributes, MISSING_VALUE)?, MISSING_VALUE, number, dialect)?;
        let scalars = match fill_value {
            Some(fill_value) => vec![fill_value],
            None => read_scalars(attributes, FILL_VALUE)?,
        };
        fill_values.add(&scalars, FILL_VALUE, number, dialect)?;
        let text = |name| -> Result<_, CfError> { Ok(attribute(attributes, name)?.and_then(|value| value.to_text())) };
        let unsigned = match text(UNSIGNED)?.as_deref() {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        Ok(Self {
            fill_values,
            scale_factor: factor(attributes, SCALE_FACTOR)?,
            add_offset: factor(attributes, ADD_OFFSET)?,
            unsigned,
            units: text("units")?,
            calendar: text("calendar")?,
            dtype: text("dtype")?,
        })
    }
}

impl FillValues {
    /// True if elements may equal a fill value, or texts make the type of the result one that could hold NaN.
    pub(crate) fn mask(&self) -> bool {
        self.texts || !self.integers.is_empty() || !self.floats.is_empty()
    }

    fn add(&mut self, scalars: &[Scalar], name: &'static str, number: Number, dialect: Dialect) -> Result<(), CfError> {
        for scalar in scalars {
            match scalar {
                _ if is_nan(scalar, name, Some(number), dialect) => self.nan |= number.is_float(),
                Scalar::Integer(integer) => self.integers.push(*integer),
                Scalar::Float(float) => self.add_float(*float),
                Scalar::Text(text) => match base64_float(text).filter(|_| is_base64(name, number, dialect)) {
                    Some(float) => self.add_float(float),
                    None => self.texts = true,
                },
                Scalar::Other => {
                    return Err(CfError::InvalidAttribute {
                        attribute: name,
                        found: "neither a number nor a text".to_owned(),
                        expected: "fill values are numbers",
                    });
                }
            }
        }
        self.check()
    }

    fn add_float(&mut self, float: f64) {
        match exact_integer(float) {
            Some(integer) => self.integers.push(integer),
            None => self.floats.push(float),
        }
    }

    fn check(&self) -> Result<(), CfError> {
        match self.integers.len().saturating_add(self.floats.len()) > MAX_FILL_VALUES {
            true => Err(CfError::TooManyFillValues),
            false => Ok(()),
        }
    }
}

/// The element that stands for a missing one: `_FillValue`, or else the first `missing_value`.
pub(crate) fn missing_element(attributes: &Json, number: Number, dialect: Dialect) -> Result<Option<Scalar>, CfError> {
    for name in [FILL_VALUE, MISSING_VALUE] {
        let Some(scalar) = read_scalars(attributes, name)?.into_iter().next() else { continue };
        return Ok(Some(match scalar {
            scalar if is_nan(&scalar, name, Some(number), dialect) => Scalar::Float(f64::NAN),
            Scalar::Text(text) if is_base64(name, number, dialect) => {
                base64_float(&text).map_or(Scalar::Other, Scalar::Float)
            }
            Scalar::Float(float) => exact_integer(float).map_or(Scalar::Float(float), Scalar::Integer),
            other => other,
        }));
    }
    Ok(None)
}

/// An attribute, or the error that it is too large.
pub(crate) fn attribute(attributes: &Json, name: &'static str) -> Result<Option<Json>, CfError> {
    let value = attributes.get(name).filter(|value| !value.is_null());
    match value.as_ref().map(|value| value.as_bytes().len()) {
        Some(size) if size > MAX_ATTRIBUTE_SIZE => Err(CfError::AttributeTooLarge { attribute: name, size }),
        _ => Ok(value),
    }
}

/// The value of an attribute, or those of its list.
fn read_scalars(attributes: &Json, name: &'static str) -> Result<Vec<Scalar>, CfError> {
    let Some(value) = attribute(attributes, name)? else { return Ok(Vec::new()) };
    match value.kind() {
        Kind::Array => Ok(value.items().map(|item| scalar(&item)).collect()),
        _ => Ok(vec![scalar(&value)]),
    }
}

fn scalar(value: &Json) -> Scalar {
    match value.kind() {
        Kind::Number => number(value.as_str()),
        Kind::Bool => Scalar::Integer(i128::from(value.as_str() == "true")),
        Kind::String => value.to_text().map_or(Scalar::Other, Scalar::Text),
        Kind::Null => Scalar::Float(f64::NAN),
        Kind::Array | Kind::Object => Scalar::Other,
    }
}

/// A number in JSON, or one of the words for floats that are not finite.
fn number(text: &str) -> Scalar {
    match text {
        "NaN" => Scalar::Float(f64::NAN),
        "Infinity" => Scalar::Float(f64::INFINITY),
        "-Infinity" => Scalar::Float(f64::NEG_INFINITY),
        _ => match (text.parse(), text.parse()) {
            (Ok(integer), _) => Scalar::Integer(integer),
            (_, Ok(float)) => Scalar::Float(float),
            _ => Scalar::Other,
        },
    }
}

fn factor(attributes: &Json, name: &'static str) -> Result<Option<Factor>, CfError> {
    let Some(value) = attribute(attributes, name)? else { return Ok(None) };
    let mut items = value.items();
    let only = match (value.kind(), items.next(), items.next()) {
        (Kind::Array, Some(only), None) => scalar(&only),
        _ => scalar(&value),
    };
    match only {
        Scalar::Integer(integer) => match i64::try_from(integer) {
            Ok(integer) => Ok(Some(Factor::Integer(integer))),
            Err(_) => Ok(Some(Factor::Float(integer as f64))),
        },
        Scalar::Float(float) => Ok(Some(Factor::Float(float))),
        Scalar::Text(_) | Scalar::Other => Err(CfError::InvalidAttribute {
            attribute: name,
            found: excerpt(value.as_str()),
            expected: "it is a number",
        }),
    }
}

fn is_nan(scalar: &Scalar, name: &str, number: Option<Number>, dialect: Dialect) -> bool {
    match scalar {
        Scalar::Float(float) => float.is_nan(),
        Scalar::Text(text) if number.is_some_and(Number::is_float) => {
            let base64 = number.is_some_and(|number| is_base64(name, number, dialect));
            text == "NaN" || base64 && base64_float(text).is_some_and(f64::is_nan)
        }
        Scalar::Text(_) | Scalar::Integer(_) | Scalar::Other => false,
    }
}

/// True if xarray writes an attribute as the base64 of a float64.
fn is_base64(name: &str, number: Number, dialect: Dialect) -> bool {
    name == FILL_VALUE && dialect == Dialect::V3 && number.is_float()
}

fn base64_float(text: &str) -> Option<f64> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok()?;
    bytes.try_into().ok().map(f64::from_le_bytes)
}

fn exact_integer(float: f64) -> Option<i128> {
    let small = float.abs() < 2_f64.powi(100);
    (small && float.fract() == 0.0).then_some(float as i128)
}

/// The beginning of a text, for messages.
pub(crate) fn excerpt(text: &str) -> String {
    let mut characters = text.chars();
    let beginning: String = characters.by_ref().take(MAX_EXCERPT_CHARS).collect();
    match characters.next() {
        Some(_) => beginning + "…",
        None => beginning,
    }
}
