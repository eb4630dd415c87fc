//! CF conventions and labels, without I/O.
//!
//! ```text
//!  attributes, data type, fill value ── Decoding::of ──► Decoding ── decode ──► decoded elements, chunk by chunk
//!                                                            │
//!  elements of a 1-D array ──────────────────────── Coordinate::new ──► Coordinate
//!                                                                          │
//!  "2020-01..2020-03", "52.5~" ── LabelSelection::parse ──────────────── select ──► indices of the dimension
//! ```
//!
//! - [`Decoding`] follows the conventions as xarray does: fill values become NaN or "not a time", packed numbers are
//!   scaled, and times since a date become moments. [`is_undecoded`] is true if a computation needs it,
//!   [`is_northward`] tells latitudes, and
//!   [`bounded_times`] are the attributes that the bounds of times lack.
//! - [`Encoding`] is the way back, from decoded elements to those that are stored.
//! - [`ByteTexts`] are the texts of byte strings, and of arrays of single characters.
//! - [`LabelSelection`] is the selection along a dimension by the labels of its coordinate, as text or JSON.
//! - [`Coordinate`] has the decoded labels of a dimension in memory, with an order for searches.
//!
//! Attributes, elements and labels are untrusted: their sizes and numbers are checked before they are looped over.

mod attributes;
mod bounds;
mod decoding;
mod encoding;
mod error;
mod kernel;
mod label;
mod moments;
mod plan;
mod texts;
mod time;

pub use attributes::{is_northward, is_undecoded};
pub use bounds::bounded_times;
pub use decoding::Decoding;
pub use encoding::{Encoding, Source, Unencodable};
pub use error::{CfError, MAX_ATTRIBUTE_SIZE, MAX_FILL_VALUES};
pub use label::{
    Coordinate, Label, LabelError, LabelSelection, LabelText, MAX_LABEL_SIZE, MAX_LABELS, MAX_SELECTION_SIZE, Match,
    NearLabels, TextSource,
};
pub use moments::CalendarTexts;
pub use texts::{ByteTexts, is_characters, joined_type};
pub use time::calendar::Calendar;
