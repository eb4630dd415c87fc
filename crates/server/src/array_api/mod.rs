//! `/array`: the elements of arrays.

mod block_stream;
mod byte_range;
mod chunks;
mod content_disposition;
mod create;
mod dataset;
mod decode;
mod encode;
mod form;
mod image;
mod read;
mod request;
mod response;
mod stats;
mod steps;
mod write;

pub(crate) use chunks::chunks;
pub(crate) use create::create;
pub(crate) use dataset::append as append_dataset;
pub(crate) use decode::DecodeError;
pub(crate) use read::{get, head, post};
pub(crate) use write::{append, put};
