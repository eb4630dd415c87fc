//! The calendars of the conventions.

/// The largest year, in both directions, of dates that are converted.
pub(crate) const MAX_YEAR: i64 = 10_000_000;

/// A calendar.
///
/// Years are astronomical: year 0 precedes year 1. Days are counted from 1970-01-01 of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calendar {
    /// Julian until 1582-10-04, then Gregorian from 1582-10-15 on.
    Standard,
    /// Gregorian, also before 1582.
    ProlepticGregorian,
    /// Julian.
    Julian,
    /// No year has a leap day.
    NoLeap,
    /// Every year has a leap day.
    AllLeap,
    /// Every month has 30 days.
    Days360,
}

/// A date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Date {
    /// Astronomical.
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: u8,
    /// From 1.
    pub(crate) day: u8,
}

/// The first day of the Gregorian calendar, 1582-10-15.
const REFORM: i64 = -141_427;
/// The day before in the Julian calendar is 1582-10-04.
const REFORM_DATE: Date = Date { year: 1582, month: 10, day: 15 };
/// The number of days by which the Julian 1970-01-01 is later than the Gregorian one.
const JULIAN_SHIFT: i64 = 13;
/// The days of the year before each month, without a leap day.
const DAYS_BEFORE: [u16; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

impl Calendar {
    /// The calendar of a name, in upper or lower case.
    pub fn parse(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "standard" | "gregorian" => Some(Self::Standard),
            "proleptic_gregorian" => Some(Self::ProlepticGregorian),
            "julian" => Some(Self::Julian),
            "noleap" | "365_day" => Some(Self::NoLeap),
            "all_leap" | "366_day" => Some(Self::AllLeap),
            "360_day" => Some(Self::Days360),
            _ => None,
        }
    }

    /// True if its dates are those of NumPy, at least since the reform of 1582.
    pub fn is_gregorian(self) -> bool {
        matches!(self, Self::Standard | Self::ProlepticGregorian)
    }

    /// True if year 1 follows year 0, and not year -1.
    pub(crate) fn has_year_zero(self) -> bool {
        !matches!(self, Self::Standard | Self::Julian)
    }

    /// The number of days from the calendar's 1970-01-01; for `Standard` and `Julian` from that of the Gregorian calendar.
    /// `None` if there is no such date.
    pub(crate) fn days(self, date: Date) -> Option<i64> {
        if date.year.abs() > MAX_YEAR || date.day < 1 || date.day > self.days_of_month(date.year, date.month)? {
            return None;
        }
        let (year, month, day) = (date.year, i64::from(date.month), i64::from(date.day));
        match self {
            Self::ProlepticGregorian => Some(gregorian_days(year, month, day)),
            Self::Julian => Some(julian_days(year, month, day)),
            Self::Standard if date >= REFORM_DATE => Some(gregorian_days(year, month, day)),
            Self::Standard => Some(julian_days(year, month, day)).filter(|&days| days < REFORM),
            Self::NoLeap => Some((year - 1970) * 365 + days_before(date.month, Leap::No) + day - 1),
            Self::AllLeap => Some((year - 1970) * 366 + days_before(date.month, Leap::Yes) + day - 1),
            Self::Days360 => Some((year - 1970) * 360 + (month - 1) * 30 + day - 1),
        }
    }

    /// The inverse of [`days`](Self::days).
    pub(crate) fn date(self, days: i64) -> Date {
        match self {
            Self::ProlepticGregorian => gregorian_date(days),
            Self::Julian => julian_date(days),
            Self::Standard if days >= REFORM => gregorian_date(days),
            Self::Standard => julian_date(days),
            Self::NoLeap => date_of_year(1970 + days.div_euclid(365), days.rem_euclid(365), Leap::No),
            Self::AllLeap => date_of_year(1970 + days.div_euclid(366), days.rem_euclid(366), Leap::Yes),
            Self::Days360 => {
                let day = days.rem_euclid(360);
                date_of(1970 + days.div_euclid(360), day / 30 + 1, day % 30 + 1)
            }
        }
    }

    /// The number of days of a month, or the last day of October 1582; `None` if there is no such month.
    pub(crate) fn days_of_month(self, year: i64, month: u8) -> Option<u8> {
        let leap = match self {
            Self::Days360 => return (1..=12).contains(&month).then_some(30),
            Self::NoLeap => false,
            Self::AllLeap => true,
            Self::Julian => year.rem_euclid(4) == 0,
            Self::Standard if year < 1582 => year.rem_euclid(4) == 0,
            Self::Standard | Self::ProlepticGregorian => is_gregorian_leap(year),
        };
        match month {
            2 => Some(28 + u8::from(leap)),
            4 | 6 | 9 | 11 => Some(30),
            1..=12 => Some(31),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Leap {
    No,
    Yes,
}

fn is_gregorian_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

fn days_before(month: u8, leap: Leap) -> i64 {
    let days = DAYS_BEFORE.get(usize::from(month).saturating_sub(1)).copied().map_or(0, i64::from);
    days + i64::from(leap == Leap::Yes && month > 2)
}

/// The date of a day of a year, counted from 0.
fn date_of_year(year: i64, day: i64, leap: Leap) -> Date {
    let month = (1..=12).rev().find(|&month| days_before(month, leap) <= day).unwrap_or(1);
    date_of(year, i64::from(month), day - days_before(month, leap) + 1)
}

fn date_of(year: i64, month: i64, day: i64) -> Date {
    Date { year, month: u8::try_from(month).unwrap_or(1), day: u8::try_from(day).unwrap_or(1) }
}

// Counted from March, the leap day is the last day of the year, and five months have 153 days.

fn gregorian_days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    year.div_euclid(400) * 146_097 + day_of_era - 719_468
}

fn gregorian_date(days: i64) -> Date {
    let days = days.saturating_add(719_468);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    from_march(days.div_euclid(146_097) * 400 + year_of_era, day_of_year)
}

fn julian_days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let cycle = year.rem_euclid(4) * 365 + day_of_year;
    year.div_euclid(4) * 1461 + cycle - 719_483 + JULIAN_SHIFT
}

fn julian_date(days: i64) -> Date {
    let days = days.saturating_add(719_483 - JULIAN_SHIFT);
    let day_of_cycle = days.rem_euclid(1461);
    let year_of_cycle = (day_of_cycle - day_of_cycle / 1460) / 365;
    from_march(days.div_euclid(1461) * 4 + year_of_cycle, day_of_cycle - 365 * year_of_cycle)
}

fn from_march(year: i64, day_of_year: i64) -> Date {
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    date_of(if month <= 2 { year + 1 } else { year }, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALENDARS: [Calendar; 6] = [
        Calendar::Standard,
        Calendar::ProlepticGregorian,
        Calendar::Julian,
        Calendar::NoLeap,
        Calendar::AllLeap,
        Calendar::Days360,
    ];

    #[test]
    fn consecutive_days_have_consecutive_dates() {
        for calendar in CALENDARS {
            let mut before = calendar.date(-1_000_001);
            for days in -1_000_000..1_000_000 {
                let date = calendar.date(days);
                assert_eq!(calendar.days(date), Some(days), "{calendar:?} {date:?}");
                assert!(date > before, "{calendar:?} {date:?}");
                before = date;
            }
        }
    }

    #[test]
    fn julian_calendar_ends_with_the_fourth_of_october() {
        let date = |year, month, day| Date { year, month, day };
        assert_eq!(Calendar::Standard.date(REFORM), date(1582, 10, 15));
        assert_eq!(Calendar::Standard.date(REFORM - 1), date(1582, 10, 4));
        assert_eq!(Calendar::Standard.days(date(1582, 10, 10)), None);
        assert_eq!(Calendar::ProlepticGregorian.date(REFORM - 1), date(1582, 10, 14));
        assert_eq!(Calendar::Julian.date(0), date(1969, 12, 19));
    }

    #[test]
    fn calendars_have_their_leap_days() {
        let leap_day = |calendar: Calendar, year| calendar.days(Date { year, month: 2, day: 29 }).is_some();
        let has: Vec<_> =
            CALENDARS.map(|calendar| [1500, 1900, 2000, 2001].map(|year| leap_day(calendar, year))).into();
        let (none, all) = ([false; 4], [true; 4]);
        let julian = [true, true, true, false];
        assert_eq!(has, [[true, false, true, false], [false, false, true, false], julian, none, all, all]);
        assert!(Calendar::Days360.days(Date { year: 2001, month: 2, day: 30 }).is_some());
        assert!(Calendar::Days360.days(Date { year: 2001, month: 1, day: 31 }).is_none());
        assert!(CALENDARS.iter().all(|calendar| calendar.days(Date { year: 2001, month: 13, day: 1 }).is_none()));
    }
}
