//! Errors of labels.

use serde_json::Value;

use super::limits::{MAX_LABEL_SIZE, MAX_LABELS, MAX_SELECTION_SIZE};

/// A selection by label is invalid, or selects nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LabelError {
    /// The text of a selection is longer than [`MAX_SELECTION_SIZE`].
    #[error("a selection by label has at most {MAX_SELECTION_SIZE} bytes, this one has {size}")]
    TooLong {
        /// Its size in bytes.
        size: usize,
    },
    /// There are more than [`MAX_LABELS`] labels.
    #[error("a selection has at most {MAX_LABELS} labels")]
    TooManyLabels,
    /// A label is longer than [`MAX_LABEL_SIZE`].
    #[error("a label has at most {MAX_LABEL_SIZE} bytes, `{label}` has {size}")]
    LabelTooLong {
        /// The label, truncated.
        label: String,
        /// Its size in bytes.
        size: usize,
    },
    /// A label is invalid, in general or for the type of its coordinate.
    #[error("the label `{label}` is invalid: {expected}")]
    Invalid {
        /// The label, truncated.
        label: String,
        /// A description of valid labels.
        expected: &'static str,
    },
    /// The coordinate does not have a label, or none within the tolerance.
    #[error("the coordinate does not have the label `{label}`")]
    NotFound {
        /// The label, truncated.
        label: String,
        /// The labels that help.
        near: Box<NearLabels>,
    },
    /// The coordinate has a label several times.
    #[error("the coordinate has the label `{label}` {count} times, which a range selects together")]
    Ambiguous {
        /// The label, truncated.
        label: String,
        /// The number of times.
        count: usize,
    },
    /// A range selects too many indices that are not consecutive.
    #[error("the range selects {count} labels of a coordinate without order, of which there are at most {limit}")]
    TooManyIndices {
        /// The number of selected indices.
        count: usize,
        /// The limit.
        limit: usize,
    },
}

/// Labels of a coordinate beside one that it does not have, as JSON; `None` if there are none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NearLabels {
    /// The nearest label, if labels have distances.
    pub nearest: Option<Value>,
    /// The first stored label.
    pub first: Option<Value>,
    /// The last stored label.
    pub last: Option<Value>,
}
