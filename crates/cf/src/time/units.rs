//! The units of encoded times: `hours since 2000-01-01 06:00`.

use super::{
    NS_PER_DAY, NS_PER_SECOND,
    calendar::{Calendar, Date},
    iso,
};
use crate::{
    attributes::excerpt,
    error::CfError,
    time::calendar::Calendar::{Days360, NoLeap, ProlepticGregorian, Standard},
};

/// The first moment of the Gregorian calendar, 1582-10-15, in nanoseconds from the start of 1970.
const REFORM: i128 = -141_427 * 86_400 * 1_000_000_000;

/// The range of xarray's `numpy.datetime64[ns]`.
pub(crate) const NANOSECONDS: std::ops::RangeInclusive<i128> = -(i64::MAX as i128)..=i64::MAX as i128;

/// The units of encoded times.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TimeUnits {
    pub(crate) calendar: Calendar,
    /// The length of a unit in nanoseconds.
    pub(crate) unit: i64,
    /// Time 0, in nanoseconds from the start of 1970.
    pub(crate) reference: i128,
    pub(crate) arithmetic: Arithmetic,
    /// The text, for messages.
    pub(crate) text: String,
}

/// The arithmetic of decoding times that are not whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    /// Floats are multiplied as float64, and cut off at nanoseconds: pandas.
    Nanoseconds,
    /// The exact product is rounded to microseconds: cftime.
    Microseconds,
}

/// The length of a unit in nanoseconds, if it is one of `timedelta64`: exactly `days`, `hours` and so on.
pub(crate) fn duration_unit(units: &str) -> Option<i64> {
    let plural = units.strip_suffix('s')?;
    unit_length(plural).filter(|_| is_numpy_unit(plural))
}

/// True if xarray takes units for those of times.
pub(crate) fn is_since(units: &str) -> bool {
    units.contains("since")
}

impl TimeUnits {
    /// True if `datetime64[ns]` can represent a moment: the proleptic Gregorian calendar has other dates before the standard
    /// one is Gregorian.
    pub(crate) fn fit_datetime64(&self, moment: i128) -> bool {
        let is_julian = self.calendar == Standard && moment < REFORM;
        NANOSECONDS.contains(&moment) && !is_julian
    }

    /// Reads the attributes `units` and `calendar`.
    pub(crate) fn read(units: &str, calendar: Option<&str>) -> Result<Self, CfError> {
        let name = calendar.unwrap_or("standard");
        let unsupported = || CfError::UnsupportedCalendar { calendar: excerpt(name) };
        let calendar = Calendar::parse(name).ok_or_else(unsupported)?;
        let invalid = || CfError::InvalidAttribute {
            attribute: "units",
            found: format!("\"{}\"", excerpt(units)),
            expected: "units of times are like `hours since 2000-01-01 00:00:00`",
        };
        let (unit_name, reference) = units.rsplit_once(" since ").ok_or_else(invalid)?;
        let unit_name = unit_name.trim().to_ascii_lowercase();
        let unit = calendar_unit(&unit_name, calendar).or_else(|| unit_length(singular(&unit_name)));
        let unit = unit.ok_or_else(invalid)?;
        let reference = iso::parse_reference(reference, calendar).ok_or_else(invalid)?;
        let arithmetic = match calendar {
            ProlepticGregorian | Standard
                if NANOSECONDS.contains(&reference)
                    && is_numpy_unit(singular(&unit_name))
                    && (calendar == ProlepticGregorian || reference >= reform()) =>
            {
                Arithmetic::Nanoseconds
            }
            _ => Arithmetic::Microseconds,
        };
        Ok(Self { calendar, unit, reference, arithmetic, text: excerpt(units) })
    }

    /// True if whole numbers of the unit are whole seconds.
    pub(crate) fn counts_seconds(&self) -> bool {
        i128::from(self.unit) % NS_PER_SECOND == 0 && self.reference % NS_PER_SECOND == 0
    }

    /// The moment of a whole number of units, in nanoseconds from the start of 1970.
    pub(crate) fn moment(&self, count: i128) -> Option<i128> {
        count.checked_mul(i128::from(self.unit))?.checked_add(self.reference)
    }

    /// The moment of a number of units, in nanoseconds from the start of 1970; `None` if it is not finite.
    pub(crate) fn moment_of_float(&self, count: f64) -> Option<i128> {
        let product = match self.arithmetic {
            Arithmetic::Nanoseconds => {
                let product = count * self.unit as f64;
                (product.abs() < 1e36).then_some(product as i128)?
            }
            Arithmetic::Microseconds => rounded_product(count, i128::from(self.unit))?.checked_mul(1000)?,
        };
        product.checked_add(self.reference)
    }
}

/// 1582-10-15, in nanoseconds from the start of 1970.
fn reform() -> i128 {
    let days = ProlepticGregorian.days(Date { year: 1582, month: 10, day: 15 });
    days.map_or(0, |days| i128::from(days) * NS_PER_DAY)
}

/// The product of a float and a number of nanoseconds in microseconds, rounded once, to even.
fn rounded_product(count: f64, unit: i128) -> Option<i128> {
    if !count.is_finite() || count.abs() >= 2_f64.powi(60) {
        return None;
    }
    let bits = count.to_bits();
    let exponent = i32::try_from(bits >> 52 & 0x7ff).ok()?;
    let fraction = i128::from(bits & ((1 << 52) - 1));
    let (mantissa, exponent) = if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    let product = mantissa.checked_mul(unit)?;
    let (numerator, denominator) = match u32::try_from(exponent) {
        Ok(exponent) => (product.checked_mul(1_i128.checked_shl(exponent)?)?, 1000),
        // Below 2⁻²⁰ of the mantissa's last bit nothing is left of a product of at most 2¹⁰⁷.
        Err(_) if exponent < -110 => (0, 1),
        Err(_) => (product, 1000_i128.checked_mul(1_i128.checked_shl(exponent.unsigned_abs())?).unwrap_or(i128::MAX)),
    };
    let (quotient, remainder) = (numerator / denominator, numerator % denominator);
    let twice = remainder.saturating_mul(2);
    let up = twice > denominator || twice == denominator && quotient % 2 == 1;
    let rounded = quotient + i128::from(up);
    Some(if count.is_sign_negative() { -rounded } else { rounded })
}

/// The length of a unit that only one calendar has.
fn calendar_unit(name: &str, calendar: Calendar) -> Option<i64> {
    let days = match (name, calendar) {
        ("month" | "months", Days360) => 30,
        ("common_year" | "common_years", NoLeap) => 365,
        ("common_year" | "common_years", Days360) => 360,
        _ => return None,
    };
    i64::try_from(NS_PER_DAY * days).ok()
}

fn singular(name: &str) -> &str {
    name.strip_suffix('s').filter(|singular| !singular.is_empty() && *singular != "m").unwrap_or(name)
}

/// The length of a unit in nanoseconds, of the names that udunits and cftime know.
fn unit_length(singular: &str) -> Option<i64> {
    let second = i64::try_from(NS_PER_SECOND).ok()?;
    match singular {
        "day" | "d" => Some(86_400 * second),
        "hour" | "hr" | "h" => Some(3600 * second),
        "minute" | "min" => Some(60 * second),
        "second" | "sec" | "s" => Some(second),
        "millisecond" | "millisec" | "msec" | "ms" => Some(1_000_000),
        "microsecond" | "microsec" => Some(1000),
        "nanosecond" => Some(1),
        _ => None,
    }
}

/// True if pandas knows the unit, in the singular or plural.
fn is_numpy_unit(singular: &str) -> bool {
    matches!(singular, "day" | "hour" | "minute" | "second" | "millisecond" | "microsecond" | "nanosecond")
}
