//! `/array`: the elements of arrays.

mod block_stream;
mod byte_range;
mod content_disposition;
mod decode;
mod encode;
mod read;
mod response;
mod write;

pub(crate) use decode::DecodeError;
pub(crate) use read::{get, head, post};
pub(crate) use write::{append, put};
