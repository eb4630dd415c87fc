//! Errors of decoding.

/// The maximum number of fill values of an array.
pub const MAX_FILL_VALUES: usize = 64;

/// The maximum size of an attribute that decoding reads, in bytes.
pub const MAX_ATTRIBUTE_SIZE: usize = 16 << 10;

/// Attributes, or elements, cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CfError {
    /// An attribute is invalid.
    #[error("the attribute `{attribute}` is {found}, but {expected}")]
    InvalidAttribute {
        /// The attribute's name.
        attribute: &'static str,
        /// Its value, truncated.
        found: String,
        /// The values that are valid.
        expected: &'static str,
    },
    /// An attribute is longer than [`MAX_ATTRIBUTE_SIZE`].
    #[error("the attribute `{attribute}` has {size} bytes, more than {MAX_ATTRIBUTE_SIZE}")]
    AttributeTooLarge {
        /// The attribute's name.
        attribute: &'static str,
        /// Its size in bytes.
        size: usize,
    },
    /// There are more than [`MAX_FILL_VALUES`] fill values.
    #[error("`_FillValue` and `missing_value` have more than {MAX_FILL_VALUES} values")]
    TooManyFillValues,
    /// The calendar is unknown.
    #[error("the calendar {calendar} is not supported")]
    UnsupportedCalendar {
        /// The calendar, truncated.
        calendar: String,
    },
    /// A time is outside of what its type can represent.
    #[error("the time {value} {units} is outside of the range of {data_type}")]
    OutOfRange {
        /// The encoded time.
        value: String,
        /// Its units, truncated.
        units: String,
        /// The data type.
        data_type: String,
    },
    /// A buffer does not consist of whole elements.
    #[error("a buffer of {len} bytes does not consist of elements of {size} bytes")]
    PartialElements {
        /// The buffer's length in bytes.
        len: usize,
        /// The size of an element in bytes.
        size: usize,
    },
}
