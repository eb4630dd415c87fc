//! Selection by label.

mod coordinate;
mod error;
mod grammar;
mod key;
mod limits;
mod search;

pub use coordinate::Coordinate;
pub use error::{LabelError, NearLabels};
pub use grammar::{Label, LabelSelection, LabelText, Match, TextSource};
pub use limits::{MAX_LABEL_SIZE, MAX_LABELS, MAX_SELECTION_SIZE};
