//! Limits of selections by label.

/// The maximum size of a selection's text in bytes.
pub const MAX_SELECTION_SIZE: usize = 1 << 20;

/// The maximum number of labels of a selection.
pub const MAX_LABELS: usize = 1 << 16;

/// The maximum size of a label in bytes.
pub const MAX_LABEL_SIZE: usize = 4 << 10;
