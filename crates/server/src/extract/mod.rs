//! Extractors: typed values from requests. An invalid request is rejected with a problem document.

mod conditions;
mod listing_format;
mod negotiation;
mod path;
mod quality_values;
mod query;

pub(crate) use conditions::{ConditionOutcome, ReadConditions, StateConditions, TagConditions, WriteConditions};
pub(crate) use listing_format::{DocumentPreference, Links, ListingFormat, ListingPreferences, takes_whole_paths};
pub(crate) use negotiation::ContentNegotiation;
pub(crate) use path::{ArrayPath, KeyPath, NodePathParam, PrefixPath, SchemaPath, StorePath};
pub(crate) use query::{ConvertQuery, ElementsPostQuery, NoQuery, Query, ValidateQuery};
