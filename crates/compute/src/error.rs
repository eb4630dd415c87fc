//! Errors of reductions.

use zarrd_meta::data_type::DataType;

/// A reduction that cannot be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComputeError {
    /// The function is not defined for the data type, or for the dimensions.
    #[error("`{function}` of {data_type}: {reason}")]
    Unsuitable {
        /// The function, or `stats`.
        function: String,
        /// The data type of the elements.
        data_type: String,
        /// The reason.
        reason: String,
    },
    /// The array has no such dimension.
    #[error("the array has no dimension {name:?}; it has {known}")]
    UnknownDimension {
        /// The name or number in the request.
        name: String,
        /// The dimensions that it has.
        known: String,
    },
    /// The selection drops the dimension.
    #[error("the selection drops the dimension {name:?}, so it cannot be reduced")]
    DroppedDimension {
        /// The name or number in the request.
        name: String,
    },
    /// A dimension is named twice.
    #[error("the dimension {name:?} is named twice")]
    RepeatedDimension {
        /// The name or number in the request.
        name: String,
    },
    /// A window does not divide its dimension, and `edge=exact` was asked for.
    #[error(
        "windows of {window} do not divide the {extent} elements along the dimension {dimension:?}: use `edge=partial` or `edge=trim`, or select {} of them", extent - extent % window.max(&1)
    )]
    UnevenWindow {
        /// The name or number of the dimension.
        dimension: String,
        /// The number of selected elements.
        extent: u64,
        /// The size of the windows.
        window: u64,
    },
    /// A group has no elements, and the function has no result without any.
    #[error("`{function}` of no elements: {reason}")]
    Empty {
        /// The function.
        function: String,
        /// The reason.
        reason: &'static str,
    },
    /// An integer sum, or a count or position that is cast, does not fit its type.
    #[error("a sum or count exceeds {data_type}: use `astype=float64`, or a smaller selection")]
    SumOverflow {
        /// The data type of the result.
        data_type: String,
    },
    /// A value would change in the data type that all results share.
    #[error(
        "the results of several functions have the data type {data_type}, in which {value} would change: ask for each function by itself"
    )]
    Inexact {
        /// The common data type.
        data_type: String,
        /// One of the values.
        value: String,
    },
    /// A data type is not cast to another one.
    #[error("{from} is not cast to {to} by NumPy's rule `same_kind`")]
    Cast {
        /// The data type of the elements.
        from: String,
        /// The requested data type.
        to: String,
    },
    /// The results, with what is needed to compute them, take more memory than one request may have.
    #[error(
        "the reduction has {groups} groups, which take {size} bytes of memory; the limit is {limit} (`--max-memory`)"
    )]
    TooManyGroups {
        /// The number of groups.
        groups: u64,
        /// The memory that they take, in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// Too many sums are of numbers whose magnitudes differ so much that each takes a wide number of its own.
    #[error(
        "exact sums of numbers with very different magnitudes take more than {limit} bytes for {groups} groups: select fewer groups, or ask for fewer functions"
    )]
    SumsTooWide {
        /// The number of groups.
        groups: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The elements passed do not have the size of their type: a bug, detected before a wrong result is returned.
    #[error("the elements were passed to the reduction wrongly")]
    Internal,
}

impl ComputeError {
    pub(crate) fn unsuitable(
        function: impl std::fmt::Display,
        data_type: &DataType,
        reason: impl Into<String>,
    ) -> Self {
        Self::Unsuitable { function: function.to_string(), data_type: shown(data_type), reason: reason.into() }
    }
}

/// The name of a data type, shortened: a struct of many fields has a long one.
pub(crate) fn shown(data_type: &DataType) -> String {
    data_type.name().chars().take(100).collect()
}
