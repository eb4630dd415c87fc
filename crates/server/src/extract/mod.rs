//! Typed values out of requests. What cannot be one refuses the request.

mod accept;
mod conditions;
mod query;
mod target;

pub(crate) use accept::{Media, Wanted};
pub(crate) use conditions::{Condition, ReadConditions, WriteConditions};
pub(crate) use query::{ConfirmQuery, KeyWriteQuery, ListingQuery};
pub(crate) use target::{AtKey, AtPrefix};
