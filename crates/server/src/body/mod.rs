//! Bodies on their way: values coming in and going out, piece by piece.

mod arrival;
mod download;
mod tracked;
mod upload;

pub(crate) use arrival::Arrival;
pub(crate) use download::value_body;
pub(crate) use tracked::Tracked;
pub(crate) use upload::{Upload, content};
