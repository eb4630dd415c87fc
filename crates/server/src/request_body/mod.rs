//! Bodies of requests.

mod completion;
mod document;
mod json_memory;
mod upload;

pub(crate) use completion::BodyCompletion;
pub(crate) use document::{
    CredentialDocument, Document, NodeDocument, PatchDocument, ReadRequestDocument, S3Document, XmlDocument,
};
pub(crate) use json_memory::NODE_OVERHEAD_BYTES;
pub(crate) use upload::{ElementsBody, FORM_MEDIA_TYPE, Upload, limited_payload, payload};
