//! `/store`: keys and their bytes.

pub(crate) mod erase;
pub(crate) mod get;
mod html;
mod json;
pub(crate) mod list;
mod media;
pub(crate) mod put;
mod redirect;
mod walk;
