//! Missing values in the notation of xarray.
//!
//! In v2 and the draft the fill value of an array with dimension names is also the value of missing elements, and the
//! attribute `_FillValue` counts only beside `null`. In v3 it is the attribute `_FillValue` alone, an integer, or for
//! floats the base64 of a little-endian float64.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    outcome::{StoredChunks, Unrepresentable},
    source::{Source, names_in},
};
use crate::{
    ArrayModel, Dialect,
    data_type::{DataType, Number, StoredOrder},
    json::{Change, Json, Kind},
    text::pointer_to,
};

const FILL_VALUE: &str = "_FillValue";

/// Packed floats have another type if a fill value is NaN.
const PACKING: [&str; 2] = ["scale_factor", "add_offset"];

/// The largest float below which all integers are floats: 2⁵³.
const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

// Losses of conversions to v2 and the draft, where xarray takes the fill value for the missing value.
const NOT_MISSING: &str = "that elements equal to the fill value are not missing";
const NOT_MISSING_THOUGH_UNSTORED: &str = "that elements equal to the fill value are not missing, because null would leave the chunks that are not stored undefined";
const MISSING_VALUE_IS_ANOTHER: &str =
    "the missing value, because chunks that are not stored have another fill value, which means missing there";

/// The fill value of v2 or the draft.
pub(super) enum Fill {
    /// That of the original.
    Same,
    /// `null`, so that no element is missing.
    Null,
    /// The missing value.
    Element(Vec<u8>),
}

/// The missing value in the attributes of an array of real numbers.
enum Mask {
    /// There is none.
    Absent,
    /// It is the fill value.
    FillValue,
    /// It is another element.
    Element(Vec<u8>),
    /// It equals no element, or there are several.
    Other,
}

impl Fill {
    /// The member `fill_value`.
    pub(super) fn json(
        self,
        source: &mut Source<'_>,
        to: Dialect,
        order: &StoredOrder,
    ) -> Result<Value, Unrepresentable> {
        match self {
            Self::Same => source.fill_value(to, order),
            Self::Null => Ok(Value::Null),
            Self::Element(element) => source.element_json(&element, to, order),
        }
    }
}

/// The attributes of an array of v2 or the draft with its missing value as v3 has it.
pub(super) fn to_attribute(source: &mut Source<'_>, attributes: Json) -> Json {
    let model = source.model;
    let is_fill_missing = model.has_fill_value() && model.has_xarray_names();
    let Some(number) = real_number(model) else {
        if is_fill_missing && !model.data_type.is_missing(&model.fill_value) {
            source.add_loss("/fill_value", "that elements equal to the fill value are missing");
        }
        return attributes;
    };
    let before = present(&attributes, FILL_VALUE);
    if !is_fill_missing {
        let Some(before) = before else { return attributes.without(FILL_VALUE) };
        return match v3_notation(number, &before, model.dialect) {
            Some(value) if before == value => attributes,
            Some(value) => attributes.with(FILL_VALUE, Change::Set(value)),
            None => {
                source.add_loss(pointer(), "the missing value, which is not one number");
                attributes.without(FILL_VALUE)
            }
        };
    }
    if let Some(before) = &before
        && !matches!(mask(model, number, Some(before)), Mask::FillValue)
    {
        source.add_loss(pointer(), "the attribute, in whose place xarray takes the fill value for the missing value");
    }
    if !model.is_masked() && before.is_none() && !is_packed(&attributes) {
        return attributes.without(FILL_VALUE);
    }
    match element_in_v3(model, number) {
        Some(value) => attributes.with(FILL_VALUE, Change::Set(value)),
        None => attributes,
    }
}

/// The attributes of an array in v2 or the draft, and the fill value that has the meaning of its missing value.
pub(super) fn to_fill_value(source: &mut Source<'_>) -> (Json, Fill) {
    let attributes = source.attributes_with_names();
    let model = source.model;
    if model.dialect != Dialect::V3 {
        return (attributes, Fill::Same);
    }
    let is_named = names_in(&attributes, model.shape.len()).is_some();
    let before = present(&attributes, FILL_VALUE);
    let Some(number) = real_number(model) else {
        other_type_to_fill_value(source, before.as_ref(), is_named);
        return (attributes, Fill::Same);
    };
    let mask = mask(model, number, before.as_ref());
    let keeps_attribute = !is_named && !matches!(mask, Mask::Absent);
    let in_v2_notation = |attributes: &Json| match before.as_ref().and_then(|value| v2_notation(number, value)) {
        Some(value) => attributes.with(FILL_VALUE, Change::SetText(value)),
        None => attributes.without(FILL_VALUE),
    };
    let are_all_stored = source.context.stored == StoredChunks::All;
    let fill = match mask {
        Mask::Absent if !is_named || !is_masked_in_v2(model, &attributes) => Fill::Same,
        Mask::Absent | Mask::Other if are_all_stored => return (in_v2_notation(&attributes), Fill::Null),
        Mask::Absent => {
            if source.context.stored == StoredChunks::Some {
                source.add_loss("/fill_value", NOT_MISSING_THOUGH_UNSTORED);
            }
            Fill::Same
        }
        Mask::FillValue => Fill::Same,
        Mask::Element(element) if are_all_stored => Fill::Element(element),
        Mask::Element(_) | Mask::Other => {
            source.add_loss(pointer(), MISSING_VALUE_IS_ANOTHER);
            Fill::Same
        }
    };
    let attributes = if keeps_attribute { in_v2_notation(&attributes) } else { attributes.without(FILL_VALUE) };
    (attributes, fill)
}

/// True if the fill value of an array of v3 depends on whether all chunks are stored.
pub(super) fn depends_on_chunks(source: &mut Source<'_>) -> bool {
    let attributes = source.attributes_with_names();
    let model = source.model;
    let Some(number) = real_number(model) else { return false };
    match mask(model, number, present(&attributes, FILL_VALUE).as_ref()) {
        Mask::Absent => names_in(&attributes, model.shape.len()).is_some() && is_masked_in_v2(model, &attributes),
        Mask::FillValue => false,
        Mask::Element(_) | Mask::Other => true,
    }
}

/// Names the elements of a type that is not real numbers, whose fill value would mean missing.
fn other_type_to_fill_value(source: &mut Source<'_>, attribute: Option<&Json>, is_named: bool) {
    let ArrayModel { data_type, fill_value, document, .. } = source.model;
    let is_equal = attribute.zip(document.get("fill_value")).is_some_and(|(mask, fill_value)| *mask == fill_value);
    if !is_named || is_equal {
        return;
    }
    if attribute.is_some() {
        source.add_loss(pointer(), "the missing value, in whose place the fill value means missing there");
    } else if !data_type.is_missing(fill_value) {
        source.add_loss("/fill_value", NOT_MISSING);
    }
}

/// True if the fill value of v3, without a missing value, would change the decoded elements in v2.
fn is_masked_in_v2(model: &ArrayModel, attributes: &Json) -> bool {
    !model.data_type.is_missing(&model.fill_value) || is_packed(attributes)
}

fn is_packed(attributes: &Json) -> bool {
    PACKING.iter().any(|name| present(attributes, name).is_some())
}

fn real_number(model: &ArrayModel) -> Option<Number> {
    model.data_type.number().filter(|number| number.is_real())
}

fn mask(model: &ArrayModel, number: Number, attribute: Option<&Json>) -> Mask {
    let Some(attribute) = attribute else { return Mask::Absent };
    match element(&model.data_type, number, attribute, model.dialect) {
        Some(element) if are_equal(&model.data_type, &element, &model.fill_value) => Mask::FillValue,
        Some(element) => Mask::Element(element),
        None => Mask::Other,
    }
}

/// True if elements are equal as numbers; NaN equals itself.
fn are_equal(data_type: &DataType, one: &[u8], other: &[u8]) -> bool {
    let floats = data_type.to_f64(one).zip(data_type.to_f64(other));
    one == other
        || data_type.number().is_some_and(Number::is_float)
            && floats.is_some_and(|(one, other)| one == other || one.is_nan() && other.is_nan())
}

/// The element that an attribute is; `None` if no element equals it.
fn element(data_type: &DataType, number: Number, value: &Json, dialect: Dialect) -> Option<Vec<u8>> {
    if !number.is_float() {
        return data_type.fill_value(&integer(value)?, Dialect::V2).ok();
    }
    let float = float(value, dialect)?;
    let element = data_type.fill_value(&float_value(float), Dialect::V2).ok()?;
    let read = data_type.to_f64(&element)?;
    (read == float || read.is_nan() && float.is_nan()).then_some(element)
}

/// The fill value as an attribute of v3.
fn element_in_v3(model: &ArrayModel, number: Number) -> Option<Value> {
    if number.is_float() {
        return model.data_type.to_f64(&model.fill_value).map(base64);
    }
    model.data_type.fill_value_json(&model.fill_value, Dialect::V3).ok()
}

/// An attribute of v2 as v3 has it; `None` if that cannot express it.
fn v3_notation(number: Number, value: &Json, dialect: Dialect) -> Option<Value> {
    if number.is_float() { float(value, dialect).map(base64) } else { integer(value) }
}

/// An attribute of v3 as v2 has it; `None` for NaN, which has no effect there.
fn v2_notation(number: Number, value: &Json) -> Option<Json> {
    match number.is_float().then(|| float(value, Dialect::V3)).flatten() {
        Some(float) if float.is_nan() => None,
        Some(float) if float.is_infinite() => Json::parse(if float > 0.0 { "Infinity" } else { "-Infinity" }).ok(),
        Some(float) => Some(Json::compact(&json!(float))),
        None => Some(value.clone()),
    }
}

fn base64(float: f64) -> Value {
    Value::from(STANDARD.encode(float.to_le_bytes()))
}

/// A float in the notation of fill values.
fn float_value(float: f64) -> Value {
    match float {
        _ if float.is_nan() => Value::from("NaN"),
        f64::INFINITY => Value::from("Infinity"),
        f64::NEG_INFINITY => Value::from("-Infinity"),
        _ => json!(float),
    }
}

/// The float of an attribute: a number, one in a list, in words, or in v3 as base64.
fn float(value: &Json, dialect: Dialect) -> Option<f64> {
    let value = only(value)?;
    let text = match value.kind() {
        Kind::Number => value.as_str().to_owned(),
        Kind::String => value.to_text()?,
        _ => return None,
    };
    match text.as_str() {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ if value.kind() == Kind::Number => text.parse().ok(),
        _ if dialect == Dialect::V3 => STANDARD.decode(text).ok()?.try_into().ok().map(f64::from_le_bytes),
        _ => None,
    }
}

/// The integer of an attribute: a whole number, or one in a list.
fn integer(value: &Json) -> Option<Value> {
    let value = only(value)?;
    let number = value.to_value().ok().filter(|_| value.kind() == Kind::Number)?;
    if number.is_i64() || number.is_u64() {
        return Some(number);
    }
    let float = number.as_f64()?;
    (float.fract() == 0.0 && float.abs() <= MAX_EXACT_FLOAT).then(|| json!(float as i64))
}

/// A value, or the only item of a list.
fn only(value: &Json) -> Option<Json> {
    if value.kind() != Kind::Array {
        return Some(value.clone());
    }
    let mut items = value.items();
    items.next().filter(|_| items.next().is_none())
}

fn present(attributes: &Json, name: &str) -> Option<Json> {
    attributes.get(name).filter(|value| !value.is_null())
}

fn pointer() -> String {
    pointer_to("/attributes", FILL_VALUE)
}
