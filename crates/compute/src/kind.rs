//! Kinds of data types.

use zarrd_meta::data_type::{DataType, Number};

/// The kind of a data type, which decides what is computed with its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A real number or a boolean.
    Number(Number),
    /// A complex number.
    Complex(Number),
    /// A count of units of time.
    Time(TimeKind),
    /// Anything else.
    Other,
}

/// A kind of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeKind {
    /// `numpy.datetime64`.
    Moment,
    /// `numpy.timedelta64`.
    Duration,
}

impl Kind {
    pub(crate) fn of(data_type: &DataType) -> Self {
        match data_type.number() {
            Some(number @ (Number::Complex64 | Number::Complex128)) => Self::Complex(number),
            Some(number) => Self::Number(number),
            None => match data_type.name().split('[').next() {
                Some("numpy.datetime64") => Self::Time(TimeKind::Moment),
                Some("numpy.timedelta64") => Self::Time(TimeKind::Duration),
                _ => Self::Other,
            },
        }
    }
}
