//! Typed values out of requests. What cannot be one refuses the request.

mod conditions;
mod listing_format;
mod negotiation;
mod path;
mod quality_values;
mod query;

pub(crate) use conditions::{Condition, ReadConditions, TagConditions, WriteConditions};
pub(crate) use listing_format::{Media, Wanted};
pub(crate) use negotiation::Forms;
pub(crate) use path::{AtArray, AtKey, AtNode, AtPrefix, AtSchema};
pub(crate) use query::{ConvertNode, KeyWrite, PostElements, Query, ValidateNode};
