//! Datetimes in NumPy's notation: ISO 8601 in the proleptic Gregorian calendar, of any year, without leap seconds and
//! time zones.

use std::{fmt::Write, ops::RangeInclusive};

/// The unit of a NumPy datetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Year,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    /// A second divided by a power of ten: 3 for milliseconds, up to 18 for attoseconds.
    Fraction(u32),
    /// No unit: plain numbers.
    Generic,
}

const SECONDS_PER_DAY: i128 = 86_400;
const ATTOSECONDS: i128 = 1_000_000_000_000_000_000;
/// The number of digits of a year beyond any `i64` times a scale.
const MAX_YEAR_DIGITS: usize = 29;

impl Unit {
    /// NumPy's names of units, with the one that NumPy writes first.
    const NAMES: [(&'static str, Self); 15] = [
        ("Y", Self::Year),
        ("M", Self::Month),
        ("W", Self::Week),
        ("D", Self::Day),
        ("h", Self::Hour),
        ("m", Self::Minute),
        ("s", Self::Second),
        ("ms", Self::Fraction(3)),
        ("us", Self::Fraction(6)),
        ("μs", Self::Fraction(6)),
        ("ns", Self::Fraction(9)),
        ("ps", Self::Fraction(12)),
        ("fs", Self::Fraction(15)),
        ("as", Self::Fraction(18)),
        ("generic", Self::Generic),
    ];

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(candidate, _)| *candidate == name).map(|(_, unit)| *unit)
    }

    pub(super) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, unit)| *unit == self).map_or("generic", |(name, _)| name)
    }

    /// The number of seconds in a unit; `None` for fractions of a second and for calendar units.
    fn seconds(self) -> Option<i128> {
        match self {
            Self::Week => Some(7 * SECONDS_PER_DAY),
            Self::Day => Some(SECONDS_PER_DAY),
            Self::Hour => Some(3600),
            Self::Minute => Some(60),
            Self::Second => Some(1),
            Self::Year | Self::Month | Self::Fraction(_) | Self::Generic => None,
        }
    }

    /// The length of a unit in nanoseconds; `None` if it has no fixed one, or is shorter.
    pub(super) fn nanoseconds(self) -> Option<i128> {
        match self {
            Self::Fraction(digits) => 10_i128.checked_pow(9_u32.checked_sub(digits)?),
            _ => self.seconds()?.checked_mul(1_000_000_000),
        }
    }

    /// Appends the datetime `count` units after the start of 1970, with the precision of the unit.
    pub(super) fn write(self, count: i128, out: &mut String) {
        // Writing to a `String` cannot fail.
        let _written = match self {
            Self::Year => write!(out, "{:04}", count.saturating_add(1970)),
            Self::Month => {
                write!(out, "{:04}-{:02}", count.div_euclid(12).saturating_add(1970), count.rem_euclid(12) + 1)
            }
            Self::Week => write_day(count.saturating_mul(7), out),
            Self::Day => write_day(count, out),
            Self::Hour => {
                write_day(count.div_euclid(24), out).and_then(|()| write!(out, "T{:02}", count.rem_euclid(24)))
            }
            Self::Minute => {
                let minute = count.rem_euclid(1440);
                write_day(count.div_euclid(1440), out)
                    .and_then(|()| write!(out, "T{:02}:{:02}", minute / 60, minute % 60))
            }
            Self::Second => write_second(count, out),
            Self::Fraction(digits) => {
                let per_second = 10_i128.pow(digits);
                let width = digits as usize;
                write_second(count.div_euclid(per_second), out)
                    .and_then(|()| write!(out, ".{:0width$}", count.rem_euclid(per_second)))
            }
            Self::Generic => write!(out, "{count}"),
        };
    }

    /// The number of units from the start of 1970 to a datetime; `None` if it is invalid or not a multiple of the unit.
    pub(super) fn parse(self, text: &str) -> Option<i128> {
        let moment = Moment::parse(text)?;
        let days = days_from_civil(moment.year, moment.month, moment.day);
        match self {
            Self::Generic => None,
            Self::Year | Self::Month => {
                if moment.day != 1 || moment.second != 0 || moment.attosecond != 0 {
                    return None;
                }
                let months = (moment.year - 1970).checked_mul(12)?.checked_add(moment.month - 1)?;
                if self == Self::Month { Some(months) } else { exact_quotient(months, 12) }
            }
            Self::Fraction(digits) => {
                let seconds = days.checked_mul(SECONDS_PER_DAY)?.checked_add(moment.second)?;
                let per_second = 10_i128.pow(digits);
                let fraction = exact_quotient(moment.attosecond, ATTOSECONDS / per_second)?;
                seconds.checked_mul(per_second)?.checked_add(fraction)
            }
            Self::Week | Self::Day | Self::Hour | Self::Minute | Self::Second => {
                if moment.attosecond != 0 {
                    return None;
                }
                let seconds = days.checked_mul(SECONDS_PER_DAY)?.checked_add(moment.second)?;
                exact_quotient(seconds, self.seconds()?)
            }
        }
    }
}

/// The quotient, if there is no remainder.
pub(super) fn exact_quotient(dividend: i128, divisor: i128) -> Option<i128> {
    (dividend.checked_rem(divisor)? == 0).then(|| dividend / divisor)
}

/// The fields of an ISO 8601 datetime.
struct Moment {
    year: i128,
    /// From 1.
    month: i128,
    /// From 1.
    day: i128,
    /// Of the day.
    second: i128,
    attosecond: i128,
}

impl Moment {
    /// Parses `YYYY[-MM[-DD[Thh[:mm[:ss[.f…]]]]]]`, with up to 18 digits after the point and an optional `Z`.
    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix('Z').unwrap_or(text);
        let (date, time) = match text.split_once(['T', ' ']) {
            Some((date, time)) => (date, Some(time)),
            None => (text, None),
        };
        let (negative, date) = match date.strip_prefix('-') {
            Some(date) => (true, date),
            None => (false, date.strip_prefix('+').unwrap_or(date)),
        };
        let mut date = date.split('-');
        let year = digits(date.next()?, 1..=MAX_YEAR_DIGITS)?;
        let year = if negative { -year } else { year };
        let month = date.next().map_or(Some(1), |text| two_digits(text, 1..=12))?;
        let last_day = days_of_month(year, month);
        let has_day = date.clone().next().is_some();
        let day = date.next().map_or(Some(1), |text| two_digits(text, 1..=last_day))?;
        if date.next().is_some() || time.is_some() && !has_day {
            return None;
        }
        let (second, attosecond) = time.map_or(Some((0, 0)), parse_time)?;
        Some(Self { year, month, day, second, attosecond })
    }
}

/// The second of the day, and the attosecond of the second.
fn parse_time(text: &str) -> Option<(i128, i128)> {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (text, None),
    };
    let mut clock = clock.split(':');
    let hour = two_digits(clock.next()?, 0..=23)?;
    let minute = clock.next().map_or(Some(0), |text| two_digits(text, 0..=59))?;
    let second = clock.next();
    if clock.next().is_some() || fraction.is_some() && second.is_none() {
        return None;
    }
    let second = second.map_or(Some(0), |text| two_digits(text, 0..=59))?;
    let attosecond = match fraction {
        None => 0,
        Some(text) => digits(text, 1..=18)?.checked_mul(10_i128.pow(u32::try_from(18 - text.len()).ok()?))?,
    };
    Some((hour * 3600 + minute * 60 + second, attosecond))
}

fn two_digits(text: &str, range: RangeInclusive<i128>) -> Option<i128> {
    digits(text, 2..=2).filter(|value| range.contains(value))
}

fn digits(text: &str, count: RangeInclusive<usize>) -> Option<i128> {
    let valid = count.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    valid.then(|| text.parse().ok()).flatten()
}

fn write_day(days: i128, out: &mut String) -> std::fmt::Result {
    let (year, month, day) = civil_from_days(days);
    write!(out, "{year:04}-{month:02}-{day:02}")
}

fn write_second(seconds: i128, out: &mut String) -> std::fmt::Result {
    write_day(seconds.div_euclid(SECONDS_PER_DAY), out)?;
    let second = seconds.rem_euclid(SECONDS_PER_DAY);
    write!(out, "T{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

fn days_of_month(year: i128, month: i128) -> i128 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

// The calendar has a period of 400 years, or 146,097 days. Counted from March, the leap day is the last day of the
// year, and five months have 153 days.

/// The number of days from 1970-01-01 to a date.
fn days_from_civil(year: i128, month: i128, day: i128) -> i128 {
    let year = if month <= 2 { year - 1 } else { year };
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    year.div_euclid(400) * 146_097 + day_of_era - 719_468
}

/// The year, month and day `days` days after 1970-01-01.
fn civil_from_days(days: i128) -> (i128, i128, i128) {
    let days = days.saturating_add(719_468);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = days.div_euclid(146_097) * 400 + year_of_era;
    (if month <= 2 { year + 1 } else { year }, month, day)
}
