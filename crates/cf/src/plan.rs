//! The steps of decoding.

use zarrd_meta::data_type::{DataType, Number};

use crate::{attributes::Factor, time::units::TimeUnits};

/// The steps of decoding.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// The type of the stored elements, after `_Unsigned`.
    pub(crate) number: Number,
    pub(crate) mask: Mask,
    pub(crate) scale_factor: Option<Factor>,
    pub(crate) add_offset: Option<Factor>,
    pub(crate) output: Output,
    /// The type of decoded elements.
    pub(crate) data_type: DataType,
}

/// The fill values, as they are compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Mask {
    /// Those that integers are compared with.
    pub(crate) integers: Vec<i128>,
    /// Those that floats are compared with.
    pub(crate) floats: Vec<f64>,
}

/// The form of decoded elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Output {
    /// The bytes stay, and have another type.
    Same,
    Float16,
    Float32,
    Float64,
    /// Integers times an integer.
    Int64,
    Bool,
    /// `datetime64[ns]`.
    Moments(TimeUnits),
    /// `datetime64[us]` that counts the days of a calendar, which is no type of an answer.
    CalendarMoments(TimeUnits),
    /// Texts of moments.
    Texts(TimeUnits),
    /// `timedelta64`: the lengths of the encoded unit and that of the result, in nanoseconds.
    Durations {
        unit: i64,
        result: i64,
        units: String,
    },
}
