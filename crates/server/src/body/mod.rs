//! Bodies on their way: values coming in and going out, piece by piece.

mod arrival;
mod cost;
mod document;
mod download;
mod tracked;
mod upload;

pub(crate) use arrival::Arrival;
pub(crate) use cost::OF_NODE;
pub(crate) use document::{Document, NodeDocument, PatchDocument, ReadDocument};
pub(crate) use download::{sized_body, value_body};
pub(crate) use tracked::Tracked;
pub(crate) use upload::{ElementsBody, Upload, content};
