//! Bodies on their way: values coming in and going out, piece by piece.

mod completion;
mod document;
mod json_memory;
mod upload;

pub(crate) use completion::Arrival;
pub(crate) use document::{Document, NodeDocument, PatchDocument, ReadDocument};
pub(crate) use json_memory::OF_NODE;
pub(crate) use upload::{ElementsBody, Upload, content};
