//! Typed values out of requests. What cannot be one refuses the request.

mod accept;
mod conditions;
mod forms;
mod query;
mod target;
mod weighted;

pub(crate) use accept::{Media, Wanted};
pub(crate) use conditions::{Condition, ReadConditions, TagConditions, WriteConditions};
pub(crate) use forms::{Coding, Forms};
pub(crate) use query::{ConvertNode, KeyWrite, PostElements, Query, ValidateNode};
pub(crate) use target::{AtArray, AtKey, AtNode, AtPrefix, AtSchema};
