//! Encoding: from decoded elements to those that are stored.

use zarrd_meta::{
    ArrayModel, Dialect,
    data_type::{DataType, Number},
};

use crate::{
    attributes::{Factor, Scalar, excerpt, missing_element},
    decoding::Decoding,
    error::CfError,
    kernel,
    plan::{Output, Plan},
    time::{NOT_A_TIME, iso, units::TimeUnits},
};

/// The encoding of elements by the attributes of an array: the inverse of its [`Decoding`].
///
/// The rules are those of xarray 2026.9.0. Numbers lose `add_offset` and then `scale_factor`, in float32 if they are of
/// this type and the array has a fill value, and in float64 otherwise. Missing ones become `_FillValue`, or else
/// `missing_value`. Integers are rounded to the nearest, and halves to the even one. Times are counted in the units of
/// the array. It differs where xarray stores another value than it was given: what the array cannot hold is
/// [`Unencodable`].
#[derive(Clone, Debug, PartialEq)]
pub struct Encoding {
    plan: Plan,
    /// The type of decoded elements.
    data_type: DataType,
    /// The element that stands for a missing one.
    missing: Option<Scalar>,
}

/// The type of elements that are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number(Number),
    /// Counts of so many nanoseconds.
    Times(i128),
}

/// An element that the array cannot hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value} {reason}")]
pub struct Unencodable {
    /// Its number among the elements.
    pub index: u64,
    /// Its value, truncated.
    pub value: String,
    /// The reason, which continues the value.
    pub reason: String,
}

/// A value on its way to a stored element.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Integer(i128),
    Float(f64),
    Missing,
}

impl Encoding {
    /// Plans the encoding of an array; `None` if its elements need none.
    ///
    /// # Errors
    ///
    /// Those of [`Decoding::of_array`].
    pub fn of_array(model: &ArrayModel) -> Result<Option<Self>, CfError> {
        let Some(decoding) = Decoding::of_array(model)? else { return Ok(None) };
        let data_type = decoding.data_type();
        let plan = decoding.into_plan();
        let null = model.document.get("fill_value").is_none_or(|fill_value| fill_value.is_null());
        let is_attribute = model.dialect == Dialect::V3 || null;
        let fill_value = (!is_attribute).then_some(model.fill_value.as_slice());
        let fill_value = fill_value.zip(model.data_type.number());
        let fill_value = fill_value.and_then(|(element, number)| kernel::scalar(number, element));
        let missing = match (fill_value, model.data_type.number()) {
            (Some(fill_value), _) => Some(fill_value),
            (None, Some(number)) => missing_element(&model.attributes, number, model.dialect)?,
            (None, None) => None,
        };
        Ok(Some(Self { plan, data_type, missing }))
    }

    /// The type of decoded elements: texts of times, if NumPy does not have their calendar.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// True if decoded elements are moments, as which their texts can be encoded.
    pub fn has_moments(&self) -> bool {
        self.units().is_some()
    }

    /// The type of elements as they are encoded; `None` if they are not of a suitable one.
    pub fn source(&self, data_type: &DataType) -> Option<Source> {
        let name = data_type.name();
        let of_time = |prefix: &str| name.starts_with(prefix).then(|| data_type.count_nanoseconds()).flatten();
        let kind = match &self.plan.output {
            Output::Moments(_) => Kind::Times(of_time("numpy.datetime64")?),
            Output::Durations { .. } => Kind::Times(of_time("numpy.timedelta64")?),
            Output::Texts(_) | Output::CalendarMoments(_) => return None,
            _ => Kind::Number(data_type.number().filter(|number| number.is_real() || *number == Number::Bool)?),
        };
        Some(Source(kind))
    }

    /// Encodes whole elements; bytes of a part of one are left out.
    ///
    /// # Errors
    ///
    /// The first element that the array cannot hold.
    pub fn encode(&self, elements: &[u8], source: Source) -> Result<Vec<u8>, Unencodable> {
        let (size, is_single) = match source.0 {
            Kind::Number(number) => (number.size(), number.size() <= 4 && number.is_float() && self.missing.is_some()),
            Kind::Times(_) => (size_of::<i64>(), false),
        };
        let mut out = Vec::with_capacity((elements.len() / size.max(1)).saturating_mul(self.plan.number.size()));
        for (index, element) in (0_u64..).zip(elements.chunks_exact(size.max(1))) {
            let encoded = match source.0 {
                Kind::Number(number) => self.encode_value(read(number, element), is_single, &mut out),
                Kind::Times(length) => self.encode_time(element, length, &mut out),
            };
            encoded.map_err(|reason| Unencodable { index, value: shown(source, element), reason })?;
        }
        Ok(out)
    }

    /// Encodes a time that is ISO 8601 in the calendar of the array, or `NaT`.
    ///
    /// # Errors
    ///
    /// A text that is no time, and a time that the array cannot hold, with 0 as its number.
    pub fn encode_text(&self, text: &str, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        let encoded = match (text, self.units()) {
            ("NaT", _) => self.encode_value(Value::Missing, false, out),
            (_, None) => Err("is a text, and the array has no units of times".to_owned()),
            (_, Some(units)) => match iso::parse(text, units.calendar) {
                Some(moments) => self.encode_moment(moments.start, units, out),
                None => Err("is no time in ISO 8601, such as 2020-01-31T06:00:00".to_owned()),
            },
        };
        encoded.map_err(|reason| Unencodable { index: 0, value: format!("{:?}", excerpt(text)), reason })
    }

    fn units(&self) -> Option<&TimeUnits> {
        match &self.plan.output {
            Output::Moments(units) | Output::Texts(units) | Output::CalendarMoments(units) => Some(units),
            _ => None,
        }
    }

    fn encode_time(&self, element: &[u8], length: i128, out: &mut Vec<u8>) -> Result<(), String> {
        let count = element.try_into().map_or(NOT_A_TIME, i64::from_le_bytes);
        if count == NOT_A_TIME {
            return self.encode_value(Value::Missing, false, out);
        }
        let nanoseconds = i128::from(count).saturating_mul(length);
        match &self.plan.output {
            Output::Durations { unit, units, .. } => {
                let value = self.counted(nanoseconds, i128::from(*unit), units)?;
                self.encode_value(value, false, out)
            }
            _ => match self.units() {
                Some(units) => self.encode_moment(nanoseconds, units, out),
                None => Err("is a time, and the array has no units of times".to_owned()),
            },
        }
    }

    /// Encodes a moment in nanoseconds from the start of 1970.
    fn encode_moment(&self, moment: i128, units: &TimeUnits, out: &mut Vec<u8>) -> Result<(), String> {
        let value = self.counted(moment.saturating_sub(units.reference), i128::from(units.unit), &units.text)?;
        self.encode_value(value, false, out)
    }

    /// A number of nanoseconds as one of units.
    fn counted(&self, nanoseconds: i128, unit: i128, units: &str) -> Result<Value, String> {
        if nanoseconds.checked_rem(unit) == Some(0) {
            return Ok(Value::Integer(nanoseconds.checked_div(unit).unwrap_or(0)));
        }
        match self.plan.number.is_float() {
            true => Ok(Value::Float(nanoseconds as f64 / unit as f64)),
            false => Err(format!("is no whole number of the units `{units}`, which the array of integers has")),
        }
    }

    fn encode_value(&self, value: Value, is_single: bool, out: &mut Vec<u8>) -> Result<(), String> {
        let Plan { number, scale_factor, add_offset, .. } = &self.plan;
        match value {
            Value::Missing => self.encode_missing(out),
            Value::Float(value) if value.is_nan() => self.encode_missing(out),
            value if scale_factor.is_none() && add_offset.is_none() => store(value, *number, out),
            Value::Integer(value) => self.encode_scaled(value as f64, is_single, out),
            Value::Float(value) => self.encode_scaled(value, is_single, out),
        }
    }

    fn encode_scaled(&self, value: f64, is_single: bool, out: &mut Vec<u8>) -> Result<(), String> {
        let Plan { number, scale_factor, add_offset, .. } = &self.plan;
        let (offset, scale) = (add_offset.map_or(0.0, float_of), scale_factor.map_or(1.0, float_of));
        let packed = match is_single {
            true => f64::from((value as f32 - offset as f32) / scale as f32),
            false => (value - offset) / scale,
        };
        match packed.is_nan() {
            true => self.encode_missing(out),
            false => store(Value::Float(packed), *number, out),
        }
    }

    fn encode_missing(&self, out: &mut Vec<u8>) -> Result<(), String> {
        let number = self.plan.number;
        let lacking = || "is missing, and the array has neither `_FillValue` nor `missing_value`".to_owned();
        let value = match &self.missing {
            Some(Scalar::Integer(integer)) if number.is_float() => Value::Integer(*integer),
            // `_Unsigned` may be given with a fill value of the other sign.
            Some(Scalar::Integer(integer)) => Value::Integer(kernel::wrap(number, *integer)),
            Some(Scalar::Float(float)) => Value::Float(*float),
            Some(Scalar::Text(_) | Scalar::Other) => return Err(lacking()),
            None if number.is_float() => Value::Float(f64::NAN),
            // It is "not a time" for xarray.
            None if number == Number::Int64 && self.is_time() => Value::Integer(NOT_A_TIME.into()),
            None => return Err(lacking()),
        };
        store(value, number, out)
    }

    fn is_time(&self) -> bool {
        self.units().is_some() || matches!(self.plan.output, Output::Durations { .. })
    }
}

fn float_of(factor: Factor) -> f64 {
    match factor {
        Factor::Integer(integer) => integer as f64,
        Factor::Float(float) => float,
    }
}

fn read(number: Number, element: &[u8]) -> Value {
    match kernel::scalar(number, element) {
        Some(Scalar::Integer(integer)) => Value::Integer(integer),
        Some(Scalar::Float(float)) => Value::Float(float),
        _ => Value::Missing,
    }
}

/// Appends a value as a number, rounded to an integer if it is one of these.
fn store(value: Value, number: Number, out: &mut Vec<u8>) -> Result<(), String> {
    let beyond = || format!("is beyond the range of the stored {}", DataType::of_number(number).name());
    let whole = || match value {
        Value::Integer(integer) => Some(integer),
        Value::Float(float) => {
            let rounded = float.round_ties_even();
            (rounded.abs() < 2_f64.powi(126)).then_some(rounded as i128)
        }
        Value::Missing => None,
    };
    let float = match value {
        Value::Integer(integer) => integer as f64,
        Value::Float(float) => float,
        Value::Missing => f64::NAN,
    };
    macro_rules! integer {
        ($type:ty) => {{
            let converted = whole().and_then(|whole| <$type>::try_from(whole).ok());
            out.extend_from_slice(&converted.ok_or_else(beyond)?.to_le_bytes());
        }};
    }
    match number {
        Number::Bool | Number::UInt8 => integer!(u8),
        Number::UInt16 => integer!(u16),
        Number::UInt32 => integer!(u32),
        Number::UInt64 => integer!(u64),
        Number::Int8 => integer!(i8),
        Number::Int16 => integer!(i16),
        Number::Int32 => integer!(i32),
        Number::Int64 => integer!(i64),
        Number::Float16 => {
            let half = half::f16::from_f64(float);
            if half.is_infinite() && float.is_finite() {
                return Err(beyond());
            }
            out.extend_from_slice(&half.to_le_bytes());
        }
        Number::Float32 => {
            let single = float as f32;
            if single.is_infinite() && float.is_finite() {
                return Err(beyond());
            }
            out.extend_from_slice(&single.to_le_bytes());
        }
        Number::Float64 => out.extend_from_slice(&float.to_le_bytes()),
        // They have no plan.
        Number::Complex64 | Number::Complex128 => return Err(beyond()),
    }
    Ok(())
}

/// An element as a text for messages.
fn shown(source: Source, element: &[u8]) -> String {
    match source.0 {
        Kind::Number(number) => match read(number, element) {
            Value::Integer(integer) => integer.to_string(),
            Value::Float(float) => float.to_string(),
            Value::Missing => "NaN".to_owned(),
        },
        Kind::Times(length) => {
            let count = element.try_into().map_or(NOT_A_TIME, i64::from_le_bytes);
            let moment = i128::from(count).saturating_mul(length);
            let mut text = String::new();
            match count {
                NOT_A_TIME => text.push_str("NaT"),
                _ if kernel::is_writable(moment) => {
                    iso::write(moment, crate::time::calendar::Calendar::ProlepticGregorian, &mut text);
                }
                _ => text.push_str(&count.to_string()),
            }
            text
        }
    }
}

#[cfg(test)]
mod tests;
