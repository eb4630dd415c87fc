//! Labels as values that are compared.

use std::cmp::Ordering;

use super::{
    error::LabelError,
    grammar::{LabelText, TextSource},
};
use crate::{
    attributes::excerpt,
    time::{NS_PER_DAY, calendar::Calendar, calendar::Date, iso},
};

/// The type of a coordinate's labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LabelType {
    Float(Width),
    Integer,
    Bool,
    /// `datetime64`, or times of a calendar.
    Moment(TimeScale, Calendar),
    /// `timedelta64`.
    Duration(TimeScale),
    Text,
}

/// The width of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Half,
    Single,
    Double,
}

/// The unit of stored times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeScale {
    /// So many nanoseconds.
    Nanoseconds(i128),
    /// A part of a nanosecond.
    PerNanosecond(i128),
    /// So many months.
    Months(i64),
}

/// A label that is looked for: floats without NaN, numbers and times in nanoseconds as integers, texts as UTF-8.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Key {
    Float(f64),
    Integer(i128),
    Text(Vec<u8>),
}

/// A label of a coordinate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum KeyRef<'a> {
    Float(f64),
    Integer(i128),
    Text(&'a [u8]),
}

/// The meaning of a label's text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Denoted {
    One(Key),
    /// Times from the first one on, and before the second one.
    Interval(Key, Key),
    /// A duration before the largest label.
    Back(iso::Duration),
}

const EXPECTED_NUMBER: &str = "the labels of the coordinate are numbers, such as -52.5 or 1e3";
const EXPECTED_BOOL: &str = "the labels of the coordinate are true and false";
const EXPECTED_TIME: &str =
    "the labels of the coordinate are times, such as 2020-01-31T06:00:00 or 2020-01, and -P1D is a day before the last";
const EXPECTED_DURATION: &str = "the labels of the coordinate are durations, such as PT6H or P1DT12H";
const EXPECTED_TOLERANCE: &str = "a tolerance is a number that is not negative, and for times a duration such as PT6H";
const NO_DISTANCE: &str = "texts have no distance, and a text with `~` is put into quotes";

impl LabelType {
    /// The value that a text denotes.
    pub(super) fn read(self, label: &LabelText) -> Result<Denoted, LabelError> {
        let text = label.text.as_str();
        let (value, expected) = match self {
            Self::Float(width) => (read_number(text).map(|key| Denoted::One(width.cast(key))), EXPECTED_NUMBER),
            Self::Integer => (read_number(text).map(Denoted::One), EXPECTED_NUMBER),
            Self::Bool => (read_bool(text), EXPECTED_BOOL),
            Self::Moment(_, calendar) => (read_moment(label, calendar), EXPECTED_TIME),
            Self::Duration(_) => (read_duration(text).map(Key::Integer).map(Denoted::One), EXPECTED_DURATION),
            Self::Text => return Ok(Denoted::One(Key::Text(text.as_bytes().to_vec()))),
        };
        value.ok_or_else(|| LabelError::Invalid { label: excerpt(text), expected })
    }

    /// The largest distance of a tolerance: a number, or nanoseconds.
    pub(super) fn read_tolerance(self, text: &str) -> Result<f64, LabelError> {
        let tolerance = match self {
            Self::Float(_) | Self::Integer => read_number(text).map(|key| match key {
                Key::Float(float) => float,
                Key::Integer(integer) => integer as f64,
                Key::Text(_) => f64::NAN,
            }),
            Self::Moment(..) | Self::Duration(_) => read_duration(text).map(|nanoseconds| nanoseconds as f64),
            Self::Bool | Self::Text => None,
        };
        let tolerance = tolerance.filter(|tolerance| *tolerance >= 0.0);
        tolerance.ok_or_else(|| LabelError::Invalid { label: excerpt(text), expected: EXPECTED_TOLERANCE })
    }

    /// Fails if labels have no distances.
    pub(super) fn check_distances(self, label: &LabelText) -> Result<(), LabelError> {
        match self {
            Self::Text | Self::Bool => Err(LabelError::Invalid { label: excerpt(&label.text), expected: NO_DISTANCE }),
            _ => Ok(()),
        }
    }

    /// The distance of a label from a key; infinite between different types.
    pub(super) fn distance(self, label: KeyRef<'_>, key: &Key) -> f64 {
        match (label, key) {
            (KeyRef::Float(label), Key::Float(key)) if label == *key => 0.0,
            (KeyRef::Float(label), Key::Float(key)) => match self {
                Self::Float(Width::Single | Width::Half) => f64::from((label as f32 - *key as f32).abs()),
                _ => (label - key).abs(),
            },
            (KeyRef::Integer(label), Key::Integer(key)) => label.abs_diff(*key) as f64,
            (KeyRef::Integer(label), Key::Float(key)) => (label as f64 - key).abs(),
            _ => f64::INFINITY,
        }
    }
}

impl Width {
    /// A number as the nearest one of this width.
    fn cast(self, key: Key) -> Key {
        let float = match key {
            Key::Float(float) => float,
            Key::Integer(integer) => integer as f64,
            Key::Text(_) => return key,
        };
        Key::Float(match self {
            Self::Half => f64::from(half::f16::from_f64(float)),
            Self::Single => f64::from(float as f32),
            Self::Double => float,
        })
    }
}

impl TimeScale {
    /// The scale of `numpy.datetime64` and `numpy.timedelta64`, given its parameters such as `10us`; `None` without a
    /// unit, and for months and years of durations.
    pub(super) fn parse(parameters: &str) -> Option<Self> {
        let unit = parameters.trim_start_matches(|character: char| character.is_ascii_digit());
        let scale = match parameters.strip_suffix(unit)? {
            "" => 1,
            digits => digits.parse::<i64>().ok()?,
        };
        let nanoseconds = |length: i128| Some(Self::Nanoseconds(length.checked_mul(i128::from(scale))?));
        match unit {
            "Y" => Some(Self::Months(scale.checked_mul(12)?)),
            "M" => Some(Self::Months(scale)),
            "W" => nanoseconds(7 * NS_PER_DAY),
            "D" => nanoseconds(NS_PER_DAY),
            "h" => nanoseconds(3_600_000_000_000),
            "m" => nanoseconds(60_000_000_000),
            "s" => nanoseconds(1_000_000_000),
            "ms" => nanoseconds(1_000_000),
            "us" | "μs" => nanoseconds(1000),
            "ns" => nanoseconds(1),
            "ps" if scale == 1 => Some(Self::PerNanosecond(1000)),
            "fs" if scale == 1 => Some(Self::PerNanosecond(1_000_000)),
            "as" if scale == 1 => Some(Self::PerNanosecond(1_000_000_000)),
            _ => None,
        }
    }

    /// A stored time in nanoseconds from the start of 1970, at most about 10³⁸.
    pub(super) fn nanoseconds(self, count: i64) -> i128 {
        let count128 = i128::from(count);
        match self {
            Self::Nanoseconds(length) => count128.saturating_mul(length),
            Self::PerNanosecond(parts) => count128.div_euclid(parts),
            Self::Months(length) => {
                let months = count.saturating_mul(length);
                let month = u8::try_from(months.rem_euclid(12) + 1).unwrap_or(1);
                let date = Date { year: months.div_euclid(12).saturating_add(1970), month, day: 1 };
                let days = Calendar::ProlepticGregorian.days(date).map(i128::from);
                // Years beyond those of dates keep their order.
                days.unwrap_or(i128::from(months).saturating_mul(31)).saturating_mul(NS_PER_DAY)
            }
        }
    }
}

impl KeyRef<'_> {
    /// Compares a label with a key; `None` for different types, which do not occur.
    pub(super) fn compare(self, key: &Key) -> Option<Ordering> {
        match (self, key) {
            (Self::Float(label), Key::Float(key)) => label.partial_cmp(key),
            (Self::Integer(label), Key::Integer(key)) => Some(label.cmp(key)),
            (Self::Integer(label), Key::Float(key)) => compare_mixed(label, *key),
            (Self::Text(label), Key::Text(key)) => Some(label.cmp(key.as_slice())),
            _ => None,
        }
    }

    /// Compares two labels of one coordinate.
    pub(super) fn order(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Float(left), Self::Float(right)) => left.partial_cmp(&right),
            (Self::Integer(left), Self::Integer(right)) => Some(left.cmp(&right)),
            (Self::Text(left), Self::Text(right)) => Some(left.cmp(right)),
            _ => None,
        }
    }

    /// An integer in the order of keys; `None` for texts.
    pub(super) fn rank(self) -> Option<i128> {
        match self {
            Self::Integer(integer) => Some(integer),
            Self::Text(_) => None,
            // The bits of floats have their order, but for the sign. Both zeros are equal.
            Self::Float(float) => {
                let magnitude = i128::from(float.abs().to_bits());
                Some(if float < 0.0 { -magnitude } else { magnitude })
            }
        }
    }

    pub(super) fn to_key(self) -> Key {
        match self {
            Self::Float(float) => Key::Float(float),
            Self::Integer(integer) => Key::Integer(integer),
            Self::Text(text) => Key::Text(text.to_vec()),
        }
    }
}

/// Compares an integer of at most 64 bits with a float, exactly.
fn compare_mixed(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if float.abs() >= 2_f64.powi(100) {
        return Some(if float > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    let floor = float.floor();
    Some(integer.cmp(&(floor as i128)).then(if float > floor { Ordering::Less } else { Ordering::Equal }))
}

/// Parses a number with digits on both sides of its point, or an infinity.
fn read_number(text: &str) -> Option<Key> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if ["inf", "infinity"].iter().any(|infinity| unsigned.eq_ignore_ascii_case(infinity)) {
        return Some(Key::Float(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY }));
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if ![Some(whole), fraction, exponent].into_iter().flatten().all(is_digits) {
        return None;
    }
    if fraction.is_none() && exponent.is_none() && whole.len() <= 36 {
        return text.strip_prefix('+').unwrap_or(text).parse().ok().map(Key::Integer);
    }
    text.parse().ok().map(Key::Float)
}

fn read_bool(text: &str) -> Option<Denoted> {
    let value = match text {
        "true" | "True" => 1,
        "false" | "False" => 0,
        _ => return None,
    };
    Some(Denoted::One(Key::Integer(value)))
}

fn read_moment(label: &LabelText, calendar: Calendar) -> Option<Denoted> {
    let text = label.text.as_str();
    if let Some(duration) = text.strip_prefix('-').filter(|duration| duration.starts_with('P')) {
        return iso::parse_duration(duration).filter(|_| label.source == TextSource::Plain).map(Denoted::Back);
    }
    let moments = iso::parse(text, calendar)?;
    let start = Key::Integer(moments.start);
    Some(match moments.end {
        Some(end) => Denoted::Interval(start, Key::Integer(end)),
        None => Denoted::One(start),
    })
}

/// A duration without months, in nanoseconds.
fn read_duration(text: &str) -> Option<i128> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let duration = iso::parse_duration(text).filter(|duration| duration.months == 0)?;
    Some(if negative { -duration.nanoseconds } else { duration.nanoseconds })
}
