//! ISO 8601, as labels and units write it.

use std::fmt::Write;

use super::{
    NS_PER_DAY, NS_PER_SECOND,
    calendar::{Calendar, Date, MAX_YEAR},
};

/// The maximum size of a text in bytes.
const MAX_SIZE: usize = 64;
const NS_PER_MINUTE: i128 = 60 * NS_PER_SECOND;
const NS_PER_HOUR: i128 = 60 * NS_PER_MINUTE;

/// The nanoseconds from the start of 1970 that a text denotes: the moment from which and the one before which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moments {
    pub(crate) start: i128,
    /// Exclusive; `None` for a text with seconds, which is one moment.
    pub(crate) end: Option<i128>,
}

/// A duration: months, whose length depends on the date, and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Duration {
    pub(crate) months: i64,
    pub(crate) nanoseconds: i128,
}

/// The precision of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Precision {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

/// Parses `YYYY[-MM[-DD[Thh[:mm[:ss[.f…]]]]]]` with an optional offset, such as `Z` or `+02:00`, after a time, and `Z`
/// after a day.
///
/// A space may stand for the `T`, and for the `+` of an offset.
pub(crate) fn parse(text: &str, calendar: Calendar) -> Option<Moments> {
    if text.len() > MAX_SIZE {
        return None;
    }
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time.trim())),
        None => (text, None),
    };
    let day = date.strip_suffix(['Z', 'z']).filter(|_| time.is_none());
    let (date, date_precision) = parse_date(day.unwrap_or(date), calendar, Digits::Padded)?;
    if day.is_some() && date_precision != Precision::Day {
        return None;
    }
    let days = i128::from(calendar.days(date)?);
    let (time, precision) = match time {
        Some(time) if date_precision == Precision::Day => parse_time(time)?,
        Some(_) => return None,
        None => (0, date_precision),
    };
    let start = days.checked_mul(NS_PER_DAY)?.checked_add(time)?;
    let length = match precision {
        Precision::Second => return Some(Moments { start, end: None }),
        Precision::Minute => NS_PER_MINUTE,
        Precision::Hour => NS_PER_HOUR,
        Precision::Day => NS_PER_DAY,
        Precision::Month => next_month(date, calendar)? - start,
        Precision::Year => next_month(Date { month: 12, ..date }, calendar)? - start,
    };
    Some(Moments { start, end: Some(start.checked_add(length)?) })
}

/// Parses the reference of encoded times, in whose date numbers may lack zeros.
pub(crate) fn parse_reference(text: &str, calendar: Calendar) -> Option<i128> {
    let text = text.trim();
    if text.len() > MAX_SIZE {
        return None;
    }
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, time.trim()),
        None => (text, ""),
    };
    let (mut date, _) = parse_date(date, calendar, Digits::Any)?;
    if date.year < 0 && !calendar.has_year_zero() {
        date.year = date.year.checked_add(1)?;
    }
    let days = i128::from(calendar.days(date)?);
    let time = if time.is_empty() { 0 } else { parse_reference_time(time)? };
    days.checked_mul(NS_PER_DAY)?.checked_add(time)
}

/// Parses `P1Y2M3W4DT5H6M7.5S`, of which one number may have decimals if it is of weeks or less.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('P').filter(|_| text.len() <= MAX_SIZE)?;
    let mut duration = Duration::default();
    let mut in_time = false;
    if rest.is_empty() || rest.ends_with('T') {
        return None;
    }
    while !rest.is_empty() {
        if let Some(time) = rest.strip_prefix('T').filter(|_| !in_time) {
            (rest, in_time) = (time, true);
            continue;
        }
        let designator = rest.find(|character: char| character.is_ascii_alphabetic())?;
        let (number, after) = rest.split_at_checked(designator)?;
        let unit = after.chars().next()?;
        rest = after.get(unit.len_utf8()..)?;
        let months = match (unit, in_time) {
            ('Y', false) => 12,
            ('M', false) => 1,
            _ => {
                let length = match (unit, in_time) {
                    ('W', false) => 7 * NS_PER_DAY,
                    ('D', false) => NS_PER_DAY,
                    ('H', true) => NS_PER_HOUR,
                    ('M', true) => NS_PER_MINUTE,
                    ('S', true) => NS_PER_SECOND,
                    _ => return None,
                };
                duration.nanoseconds = duration.nanoseconds.checked_add(decimal(number, length)?)?;
                continue;
            }
        };
        let count = i64::try_from(digits(number, 1..=7)?).ok()?;
        duration.months = duration.months.checked_add(count.checked_mul(months)?)?;
    }
    Some(duration)
}

/// The moment a duration before another one. A day that the month lacks becomes its last one.
pub(crate) fn subtract(moment: i128, duration: Duration, calendar: Calendar) -> Option<i128> {
    let days = i64::try_from(moment.div_euclid(NS_PER_DAY)).ok()?;
    let mut date = calendar.date(days);
    let months = date.year.checked_mul(12)?.checked_add(i64::from(date.month) - 1)?.checked_sub(duration.months)?;
    (date.year, date.month) = (months.div_euclid(12), u8::try_from(months.rem_euclid(12) + 1).ok()?);
    date.day = date.day.min(calendar.days_of_month(date.year, date.month)?);
    let days = if duration.months == 0 { days } else { calendar.days(date)? };
    let moved = i128::from(days).checked_mul(NS_PER_DAY)?.checked_add(moment.rem_euclid(NS_PER_DAY))?;
    moved.checked_sub(duration.nanoseconds)
}

/// Appends the moment so many nanoseconds after the start of 1970, with as many digits after the point as it needs, in
/// groups of three. The year is that of the calendar: in those without a year 0, -1 precedes 1.
pub(crate) fn write(moment: i128, calendar: Calendar, out: &mut String) {
    let date = calendar.date(i64::try_from(moment.div_euclid(NS_PER_DAY)).unwrap_or_default());
    let year = if date.year <= 0 && !calendar.has_year_zero() { date.year - 1 } else { date.year };
    let time = moment.rem_euclid(NS_PER_DAY);
    let (second, fraction) = (time / NS_PER_SECOND, time % NS_PER_SECOND);
    // Writing to a `String` cannot fail.
    let _written = match year < 0 {
        true => write!(out, "-{:04}", -year),
        false => write!(out, "{year:04}"),
    };
    let _written = write!(
        out,
        "-{:02}-{:02}T{:02}:{:02}:{:02}",
        date.month,
        date.day,
        second / 3600,
        second / 60 % 60,
        second % 60
    );
    let _written = match fraction {
        0 => Ok(()),
        fraction if fraction % 1000 == 0 => write!(out, ".{:06}", fraction / 1000),
        fraction => write!(out, ".{fraction:09}"),
    };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Digits {
    /// Four or more of a year, two of a month and a day.
    Padded,
    Any,
}

fn parse_date(text: &str, calendar: Calendar, padding: Digits) -> Option<(Date, Precision)> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (years, others) = match padding {
        Digits::Padded => (4..=8, 2..=2),
        Digits::Any => (1..=8, 1..=2),
    };
    let mut parts = text.split('-');
    let year = i64::try_from(digits(parts.next()?, years)?).ok().filter(|year| *year <= MAX_YEAR)?;
    let year = if negative { -year } else { year };
    let (month, day) = (parts.next(), parts.next());
    if parts.next().is_some() {
        return None;
    }
    let number = |text: Option<&str>| match text {
        None => Some(1),
        Some(text) => u8::try_from(digits(text, others.clone())?).ok(),
    };
    let date = Date { year, month: number(month)?, day: number(day)? };
    calendar.days_of_month(date.year, date.month)?;
    let precision = match (month, day) {
        (None, _) => Precision::Year,
        (_, None) => Precision::Month,
        _ => Precision::Day,
    };
    Some((date, precision))
}

/// The start of the month after that of a date.
fn next_month(date: Date, calendar: Calendar) -> Option<i128> {
    let next = match date.month {
        12 => Date { year: date.year.checked_add(1)?, month: 1, day: 1 },
        month => Date { month: month.checked_add(1)?, day: 1, ..date },
    };
    i128::from(calendar.days(next)?).checked_mul(NS_PER_DAY)
}

/// Parses `hh[:mm[:ss[.f…]]]` and an offset.
fn parse_time(text: &str) -> Option<(i128, Precision)> {
    let (clock, offset) = split_offset(text)?;
    let (time, precision) = parse_clock(clock, 2..=2)?;
    Some((time.checked_sub(offset)?, precision))
}

/// Parses `h[:m[:s[.f…]]]` and an offset, between which there may be spaces.
fn parse_reference_time(text: &str) -> Option<i128> {
    let text = text.strip_suffix("UTC").or_else(|| text.strip_suffix("GMT")).unwrap_or(text).trim();
    let (clock, offset) = split_offset(text)?;
    let (time, _) = parse_clock(clock.trim(), 1..=2)?;
    time.checked_sub(offset)
}

fn parse_clock(text: &str, lengths: std::ops::RangeInclusive<usize>) -> Option<(i128, Precision)> {
    let mut parts = text.split(':');
    let below = |text: &str, limit| digits(text, lengths.clone()).filter(|value| *value < limit);
    let hour = below(parts.next()?, 24)?;
    let Some(minute) = parts.next() else { return Some((hour * NS_PER_HOUR, Precision::Hour)) };
    let minute = below(minute, 60)?;
    let time = hour * NS_PER_HOUR + minute * NS_PER_MINUTE;
    let Some(second) = parts.next() else { return Some((time, Precision::Minute)) };
    if parts.next().is_some() {
        return None;
    }
    let whole = second.split('.').next()?;
    below(whole, 60)?;
    let second = second.strip_suffix('.').unwrap_or(second);
    Some((time + decimal(second, NS_PER_SECOND)?, Precision::Second))
}

/// Splits a time from its offset in nanoseconds.
fn split_offset(text: &str) -> Option<(&str, i128)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(at) = text.find(['+', '-', ' ']) else { return Some((text, 0)) };
    let (clock, offset) = text.split_at_checked(at)?;
    let offset = offset.trim_start();
    let (sign, offset) = match offset.strip_prefix('-') {
        Some(offset) => (-1, offset),
        None => (1, offset.strip_prefix('+').unwrap_or(offset)),
    };
    let (hours, minutes) = match offset.split_once(':') {
        Some((hours, minutes)) => (digits(hours, 1..=2)?, digits(minutes, 2..=2)?),
        None if offset.len() == 4 => (digits(offset.get(..2)?, 2..=2)?, digits(offset.get(2..)?, 2..=2)?),
        None => (digits(offset, 1..=2)?, 0),
    };
    (hours < 24 && minutes < 60).then_some((clock, sign * (hours * NS_PER_HOUR + minutes * NS_PER_MINUTE)))
}

/// A decimal number of a unit, in nanoseconds; digits beyond them are cut off.
fn decimal(text: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let whole = digits(whole, 1..=12)?.checked_mul(unit)?;
    let Some(fraction) = fraction else { return Some(whole) };
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    whole.checked_add(digits(fraction, 1..=18)?.checked_mul(unit)? / scale)
}

fn digits(text: &str, lengths: std::ops::RangeInclusive<usize>) -> Option<i128> {
    let valid = lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    valid.then(|| text.parse().ok()).flatten()
}
