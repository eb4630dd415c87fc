//! `/store`: keys and their bytes.

pub(crate) mod content_type;
pub(crate) mod erase;
pub(crate) mod get;
mod html_listing;
mod json_listing;
pub(crate) mod list;
mod pages;
pub(crate) mod put;
mod redirect;
mod value_listing;
