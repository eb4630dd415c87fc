//! Plans of decoding: from an array's attributes to the type and the steps of decoded elements.

use serde_json::{Value, json};
use zarrd_codec::Elements;
use zarrd_meta::{
    ArrayModel, BoundedTimes, Dialect,
    data_type::{DataType, Number, parse_v3},
    json::Json,
};

use crate::{
    attributes::{Attributes, Factor, FillValues, excerpt},
    error::CfError,
    kernel,
    moments::CalendarTexts,
    plan::{Mask, Output, Plan},
    time::{
        calendar::Calendar,
        units::{self, TimeUnits},
    },
};

/// The decoding of an array's elements.
///
/// The rules and the types of results are those of `xarray.open_zarr` of xarray 2026.9.0. They differ where its result
/// depends on all elements of an array, has no data type of Zarr, or is an error:
///
/// - Times of the standard and proleptic Gregorian calendars are `datetime64[ns]`. Those outside of its range, or
///   before 1582-10-15 in the standard calendar, are [`CfError::OutOfRange`]; [as texts](Decoding::with_text_times),
///   times have no range. xarray makes objects of all elements.
/// - Times of other calendars are texts (ISO 8601), and missing ones `NaT`.
/// - Timedeltas have the unit of the attribute `dtype`, or that of `units` if it is finer; what is finer is cut off.
/// - Integers with the units of a timedelta, without such a `dtype`, become floats if they have a fill value, with NaN
///   for missing ones; xarray makes them −2⁶³.
/// - Fill values of booleans, complex numbers and texts have no effect. [`ByteTexts`](crate::ByteTexts) joins
///   characters.
/// - A `_FillValue` beyond the range of a type with `_Unsigned` is wrapped around. A whole `scale_factor` makes
///   floats of floats, and of integers with a fill value.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoding(Plan);

impl Decoding {
    /// Plans the decoding of an array; `None` if its elements need none.
    ///
    /// `fill_value` is the element that missing chunks consist of, and `None` if the document has `null`. In v2 and the
    /// draft it has the meaning of `_FillValue`, as xarray writes it.
    ///
    /// # Errors
    ///
    /// Attributes that are invalid or too large, and unknown calendars.
    pub fn of(
        attributes: &Json,
        data_type: &DataType,
        fill_value: Option<&[u8]>,
        dialect: Dialect,
    ) -> Result<Option<Self>, CfError> {
        Self::with_inherited(attributes, data_type, fill_value, (dialect, None))
    }

    fn with_inherited(
        attributes: &Json,
        data_type: &DataType,
        fill_value: Option<&[u8]>,
        (dialect, inherited): (Dialect, Option<&BoundedTimes>),
    ) -> Result<Option<Self>, CfError> {
        let Some(number) = data_type.number() else { return Ok(None) };
        if matches!(number, Number::Complex64 | Number::Complex128) {
            return Ok(None);
        }
        let fill_value =
            fill_value.filter(|_| dialect != Dialect::V3).and_then(|element| kernel::scalar(number, element));
        let mut attributes = Attributes::read(attributes, number, fill_value, dialect)?;
        if let Some(times) = inherited.filter(|_| attributes.units.is_none()) {
            attributes.units = Some(times.units.clone());
            attributes.calendar = attributes.calendar.or_else(|| times.calendar.clone());
        }
        Self::plan(data_type, number, attributes)
    }

    /// Plans the decoding of an array; `None` if its elements need none. See [`of`](Self::of). Bounds of times are
    /// decoded as the times are.
    pub fn of_array(model: &ArrayModel) -> Result<Option<Self>, CfError> {
        let null = model.document.get("fill_value").is_none_or(|fill_value| fill_value.is_null());
        let fill_value = Some(model.fill_value.as_slice()).filter(|_| !null);
        let inherited = model.bounded_times.as_ref();
        Self::with_inherited(&model.attributes, &model.data_type, fill_value, (model.dialect, inherited))
    }

    /// The type of decoded elements.
    pub fn data_type(&self) -> DataType {
        self.0.data_type.clone()
    }

    /// The calendar, if decoded elements are texts of its times.
    pub fn text_calendar(&self) -> Option<Calendar> {
        match &self.0.output {
            Output::Texts(units) => Some(units.calendar),
            _ => None,
        }
    }

    /// Decodes a buffer of whole elements.
    ///
    /// # Errors
    ///
    /// A buffer with a part of an element, and times out of range.
    pub fn decode(&self, elements: &Elements) -> Result<Elements, CfError> {
        kernel::decode(&self.0, elements)
    }

    /// The decoding of the same times as moments, which have an order and means, and the way from those to texts;
    /// `None` if decoded elements are no texts.
    pub fn as_moments(&self) -> Option<(Self, CalendarTexts)> {
        let Output::Texts(units) = &self.0.output else { return None };
        let (output, texts) = (Output::CalendarMoments(units.clone()), CalendarTexts(units.calendar));
        let data_type = time_type("numpy.datetime64", "us")?;
        Some((Self(Plan { output, data_type, ..self.0.clone() }), texts))
    }

    /// The same decoding with texts in place of `datetime64`: they have years of up to six digits.
    #[must_use]
    pub fn with_text_times(self) -> Self {
        match (&self.0.output, parse_v3(&Value::from("string"))) {
            (Output::Moments(units), Ok(data_type)) => {
                Self(Plan { output: Output::Texts(units.clone()), data_type, ..self.0 })
            }
            _ => self,
        }
    }

    /// True if there are elements that `datetime64[ns]` cannot represent.
    pub fn may_exceed_datetime64(&self) -> bool {
        match &self.0.output {
            Output::Moments(units) => kernel::may_exceed(&self.0, units),
            _ => false,
        }
    }

    /// True if `datetime64[ns]` can represent all of these elements, or they become no times.
    pub fn fits_datetime64(&self, elements: &Elements) -> bool {
        !matches!((&self.0.output, self.decode(elements)), (Output::Moments(_), Err(CfError::OutOfRange { .. })))
    }

    /// The steps.
    pub(crate) fn into_plan(self) -> Plan {
        self.0
    }

    /// The units of times that are decoded to texts, with their moments in microseconds from the start of 1970.
    pub(crate) fn text_moments(&self, elements: &Elements) -> Option<(&TimeUnits, Result<Vec<i64>, CfError>)> {
        match (&self.0.output, elements) {
            (Output::Texts(units), Elements::Fixed(bytes)) => Some((units, kernel::moments(&self.0, bytes, units))),
            _ => None,
        }
    }

    fn plan(stored: &DataType, stored_number: Number, attributes: Attributes) -> Result<Option<Self>, CfError> {
        let number = with_sign(stored_number, attributes.unsigned);
        let Attributes { mut fill_values, scale_factor, add_offset, .. } = attributes;
        if number != stored_number {
            fill_values.integers.iter_mut().for_each(|integer| *integer = kernel::wrap(number, *integer));
        }
        let is_bool = number == Number::Bool;
        if is_bool {
            fill_values = FillValues::default();
        }
        let scaled = scale_factor.is_some() || add_offset.is_some();
        let output = match time_output(&attributes.units, &attributes.calendar, &attributes.dtype)? {
            Some(output) if !is_bool => output,
            _ if attributes.dtype.as_deref() == Some("bool") && !is_bool => Output::Bool,
            _ if scaled => scaled_output(number, &fill_values, scale_factor, add_offset),
            _ if fill_values.mask() => masked_output(number),
            _ if number != stored_number => Output::Same,
            _ => return Ok(None),
        };
        let data_type = match &output {
            Output::Same => number_type(number),
            Output::Float16 => number_type(Number::Float16),
            Output::Float32 => number_type(Number::Float32),
            Output::Float64 => number_type(Number::Float64),
            Output::Int64 => number_type(Number::Int64),
            Output::Bool => number_type(Number::Bool),
            // All of one precision: pandas refuses columns in which some times have a fraction.
            Output::Moments(units) if !number.is_float() && !scaled && units.counts_seconds() => {
                Some(DataType::moments_of_whole_seconds())
            }
            Output::Moments(_) => time_type("numpy.datetime64", "ns"),
            Output::Durations { result, .. } => time_type("numpy.timedelta64", unit_name(*result)),
            Output::CalendarMoments(_) => time_type("numpy.datetime64", "us"),
            Output::Texts(_) => parse_v3(&Value::from("string")).ok(),
        };
        // Each of these types is known.
        let Some(data_type) = data_type else { return Ok(None) };
        if number.is_float() && !scaled && !fill_values.mask() && data_type == *stored {
            return Ok(None);
        }
        let floats =
            fill_values.integers.iter().map(|&integer| integer as f64).chain(fill_values.floats.iter().copied());
        let mask = Mask { floats: floats.collect(), integers: fill_values.integers };
        Ok(Some(Self(Plan { number, mask, scale_factor, add_offset, output, data_type })))
    }
}

/// The type after `_Unsigned`.
fn with_sign(number: Number, unsigned: Option<bool>) -> Number {
    match (number, unsigned) {
        (Number::Int8, Some(true)) => Number::UInt8,
        (Number::Int16, Some(true)) => Number::UInt16,
        (Number::Int32, Some(true)) => Number::UInt32,
        (Number::Int64, Some(true)) => Number::UInt64,
        (Number::UInt8, Some(false)) => Number::Int8,
        (Number::UInt16, Some(false)) => Number::Int16,
        (Number::UInt32, Some(false)) => Number::Int32,
        (Number::UInt64, Some(false)) => Number::Int64,
        _ => number,
    }
}

fn time_output(
    units: &Option<String>,
    calendar: &Option<String>,
    dtype: &Option<String>,
) -> Result<Option<Output>, CfError> {
    let Some(units) = units else { return Ok(None) };
    if units::is_since(units) {
        let units = TimeUnits::read(units, calendar.as_deref())?;
        return Ok(Some(if units.calendar.is_gregorian() { Output::Moments(units) } else { Output::Texts(units) }));
    }
    let declared = dtype.as_deref().and_then(|dtype| dtype.strip_prefix("timedelta64"));
    let (Some(declared), Some(unit)) = (declared, units::duration_unit(units)) else { return Ok(None) };
    let declared = match declared {
        "[ns]" | "[ps]" | "[fs]" | "[as]" => 1,
        "[us]" => 1_000,
        "[ms]" => 1_000_000,
        _ => 1_000_000_000,
    };
    Ok(Some(Output::Durations { unit, result: declared.min(unit), units: excerpt(units) }))
}

/// The type of `_choose_float_dtype` of xarray.
fn scaled_output(
    number: Number,
    fill_values: &FillValues,
    scale_factor: Option<Factor>,
    add_offset: Option<Factor>,
) -> Output {
    // A fill value that is only NaN has xarray believe that the type was chosen.
    if fill_values.nan && !fill_values.mask() {
        return masked_output(number);
    }
    match (scale_factor, add_offset) {
        (Some(Factor::Integer(_)), None) if !fill_values.mask() && !number.is_float() => Output::Int64,
        _ => Output::Float64,
    }
}

/// The type of `maybe_promote` of xarray.
fn masked_output(number: Number) -> Output {
    match number {
        Number::Float16 => Output::Float16,
        Number::Float32 => Output::Float32,
        Number::Int8 | Number::UInt8 | Number::Int16 | Number::UInt16 => Output::Float32,
        _ => Output::Float64,
    }
}

fn number_type(number: Number) -> Option<DataType> {
    let name = match number {
        Number::Bool => "bool",
        Number::Int8 => "int8",
        Number::Int16 => "int16",
        Number::Int32 => "int32",
        Number::Int64 => "int64",
        Number::UInt8 => "uint8",
        Number::UInt16 => "uint16",
        Number::UInt32 => "uint32",
        Number::UInt64 => "uint64",
        Number::Float16 => "float16",
        Number::Float32 => "float32",
        Number::Float64 => "float64",
        Number::Complex64 => "complex64",
        Number::Complex128 => "complex128",
    };
    parse_v3(&Value::from(name)).ok()
}

fn time_type(name: &str, unit: &str) -> Option<DataType> {
    parse_v3(&json!({"name": name, "configuration": {"unit": unit, "scale_factor": 1}})).ok()
}

fn unit_name(nanoseconds: i64) -> &'static str {
    match nanoseconds {
        1 => "ns",
        1_000 => "us",
        1_000_000 => "ms",
        _ => "s",
    }
}
