//! `numpy.datetime64` and `numpy.timedelta64`: signed 64-bit counts of a unit. The smallest one is "not a time".

use serde_json::{Map, Value, json};

use super::{
    DataType, DataTypeFamily, ElementType, FixedLayout, Layout, StoredOrder, TypeError, UnsupportedInFormat, V2Context,
    ValueError,
    calendar::{Unit, exact_quotient},
    int::exact_integer,
    text::{
        NumpyText, append, draft_bit_pattern, invalid, invalid_value, is_null_fill, only_members, order_sign, words,
    },
};
use crate::Dialect;

const SIZE: usize = size_of::<i64>();
const NOT_A_TIME: &str = "NaT";
const MAX_SCALE: u64 = i32::MAX as u64;
const NANOSECOND: Unit = Unit::Fraction(9);
const NANOSECONDS_PER_SECOND: i128 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Moment,
    Duration,
}

#[derive(Clone, Copy, Debug)]
struct Time {
    kind: Kind,
    unit: Unit,
    /// The number of units of one count, from 1 to 2³¹ − 1.
    scale: u32,
    text: Precision,
}

/// The precision of a moment's text.
#[derive(Clone, Copy, Debug)]
enum Precision {
    /// That of the unit, as NumPy writes it.
    Unit,
    /// Seconds where nothing is lost by it, otherwise that of the unit.
    WholeSeconds,
}

/// `numpy.datetime64[ns]` of moments that are whole seconds, which are written without nine zeros.
pub(super) fn whole_seconds() -> DataType {
    DataType::new(Time { kind: Kind::Moment, unit: NANOSECOND, scale: 1, text: Precision::WholeSeconds })
}

/// `numpy.datetime64` and `numpy.timedelta64` (v3), `<M8[10us]` and `<m8[s]` (v2, draft).
pub(super) struct TimeFamily;

impl DataTypeFamily for TimeFamily {
    fn read_v2(&self, dtype: &Value, _context: V2Context<'_>) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        let text = NumpyText::parse(dtype)?;
        let kind = match text.kind {
            'M' => Kind::Moment,
            'm' => Kind::Duration,
            _ => return None,
        };
        let parameters = text.rest.strip_prefix('8')?;
        Some(
            numpy_parameters(parameters)
                .ok_or_else(|| text.invalid("has no unit that is known"))
                .and_then(|(unit, scale)| Ok((kind.counted_in(unit, scale), text.order()?))),
        )
    }

    fn read_v3(&self, name: &str, configuration: Option<&Map<String, Value>>) -> Option<Result<DataType, TypeError>> {
        let kind = [Kind::Moment, Kind::Duration].into_iter().find(|kind| kind.name() == name)?;
        if let Err(error) = only_members(name, configuration, &["unit", "scale_factor"]) {
            return Some(Err(error));
        }
        let member = |key| configuration.and_then(|configuration| configuration.get(key));
        let Some(unit) = member("unit").and_then(Value::as_str).and_then(Unit::from_name) else {
            return Some(Err(invalid(name, "has no \"unit\" that is known")));
        };
        let scale = member("scale_factor").and_then(Value::as_u64).filter(|scale| (1..=MAX_SCALE).contains(scale));
        let Some(scale) = scale.and_then(|scale| u32::try_from(scale).ok()) else {
            return Some(Err(invalid(name, "has no \"scale_factor\" from 1 to 2147483647")));
        };
        Some(Ok(kind.counted_in(unit, scale)))
    }
}

/// Parses `[10us]` as a scale and a unit; the empty text has no unit.
fn numpy_parameters(text: &str) -> Option<(Unit, u32)> {
    if text.is_empty() {
        return Some((Unit::Generic, 1));
    }
    let text = text.strip_prefix('[')?.strip_suffix(']')?;
    let unit = text.trim_start_matches(|character: char| character.is_ascii_digit());
    let scale = match text.strip_suffix(unit)? {
        "" => 1,
        digits => digits.parse::<u64>().ok().filter(|scale| (1..=MAX_SCALE).contains(scale))?,
    };
    Some((Unit::from_name(unit)?, u32::try_from(scale).ok()?))
}

impl Kind {
    /// The data type of counts of so many units, which NumPy has.
    fn counted_in(self, unit: Unit, scale: u32) -> DataType {
        DataType::new(Time { kind: self, unit, scale, text: Precision::Unit })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Moment => "numpy.datetime64",
            Self::Duration => "numpy.timedelta64",
        }
    }

    fn letter(self) -> char {
        match self {
            Self::Moment => 'M',
            Self::Duration => 'm',
        }
    }
}

impl Time {
    /// The unit with its scale: `10us`, or `us`.
    fn parameters(self) -> String {
        match self.scale {
            1 => self.unit.name().to_owned(),
            scale => format!("{scale}{}", self.unit.name()),
        }
    }

    /// NumPy's abbreviation, without a unit if it is generic.
    fn numpy(self, sign: char) -> String {
        match (self.unit, self.scale) {
            (Unit::Generic, 1) => format!("{sign}{}8", self.kind.letter()),
            _ => format!("{sign}{}8[{}]", self.kind.letter(), self.parameters()),
        }
    }

    /// The count in a JSON value, including "not a time".
    fn count(self, json: &Value) -> Option<i64> {
        match json.as_str() {
            Some(NOT_A_TIME) => Some(i64::MIN),
            Some(text) if self.kind == Kind::Moment => {
                let count = exact_quotient(self.unit.parse(text)?, i128::from(self.scale))?;
                // The number of "not a time" is out of range.
                i64::try_from(count).ok().filter(|count| *count != i64::MIN)
            }
            Some(_) => None,
            None => exact_integer(json).and_then(|count| i64::try_from(count).ok()),
        }
    }
}

impl ElementType for Time {
    fn name(&self) -> String {
        format!("{}[{}]", self.kind.name(), self.parameters())
    }

    fn layout(&self) -> Layout {
        Layout::Fixed(FixedLayout { size: SIZE, words: words(SIZE, 1) })
    }

    fn fill_value(&self, json: &Value, dialect: Dialect) -> Result<Vec<u8>, ValueError> {
        if is_null_fill(json, dialect) {
            // zarr-python reads it as "not a time" in v2.
            return Ok(if dialect == Dialect::V2 { i64::MIN.to_le_bytes().to_vec() } else { self.zero() });
        }
        if let Some(pattern) = draft_bit_pattern(json, dialect, SIZE) {
            return Ok(pattern);
        }
        let mut element = Vec::with_capacity(SIZE);
        self.parse_json(json, &mut element)?;
        Ok(element)
    }

    fn fill_value_json(&self, element: &[u8], _dialect: Dialect) -> Result<Value, UnsupportedInFormat> {
        // zarr-python writes "not a time" as a number in every dialect, and every reader accepts it.
        Ok(Value::from(element.try_into().map(i64::from_le_bytes).unwrap_or_default()))
    }

    fn is_time(&self) -> bool {
        true
    }

    fn count_nanoseconds(&self) -> Option<i128> {
        Some(self.unit.nanoseconds()?.saturating_mul(i128::from(self.scale)))
    }

    fn is_missing(&self, element: &[u8]) -> bool {
        element == i64::MIN.to_le_bytes()
    }

    fn zero(&self) -> Vec<u8> {
        vec![0; SIZE]
    }

    fn write_json(&self, element: &[u8], out: &mut Vec<u8>) {
        let Ok(count) = element.try_into().map(i64::from_le_bytes) else { return };
        if count == i64::MIN {
            return append(out, NOT_A_TIME);
        }
        if self.kind == Kind::Duration || self.unit == Unit::Generic {
            return append(out, &count);
        }
        let mut text = String::with_capacity(40);
        let seconds = match self.text {
            Precision::WholeSeconds => exact_quotient(i128::from(count), NANOSECONDS_PER_SECOND),
            Precision::Unit => None,
        };
        match seconds {
            Some(seconds) => Unit::Second.write(seconds, &mut text),
            None => self.unit.write(i128::from(count).saturating_mul(i128::from(self.scale)), &mut text),
        }
        append(out, &text);
    }

    fn parse_json(&self, json: &Value, out: &mut Vec<u8>) -> Result<(), ValueError> {
        let reason = match self.kind {
            Kind::Moment => "it is an ISO 8601 text that its unit tells exactly, a count, or \"NaT\"",
            Kind::Duration => "it is a count of its unit, or \"NaT\"",
        };
        let count = self.count(json).ok_or_else(|| invalid_value(self, json, reason))?;
        out.extend_from_slice(&count.to_le_bytes());
        Ok(())
    }

    fn npy_descr(&self) -> Option<String> {
        // NumPy has no scale without a unit.
        (self.unit != Unit::Generic || self.scale == 1).then(|| format!("'{}'", self.numpy('<')))
    }

    fn to_v3(&self) -> Value {
        json!({
            "name": self.kind.name(),
            "configuration": {"unit": self.unit.name(), "scale_factor": self.scale},
        })
    }

    fn to_v2(&self, order: &StoredOrder) -> Result<Value, UnsupportedInFormat> {
        Ok(Value::from(self.numpy(order_sign(order))))
    }
}
