//! S3: buckets are the first segments of keys, and objects the values below them.
//!
//! A request is checked and identified by [`request`], which keeps its body, its conditions and the source of a copy in a
//! [`Context`](context::Context). s3s routes the rest to an operation of [`operations`], which finds the context among the
//! extensions of its request.

mod attributes;
mod buckets;
mod completion;
mod content;
mod context;
mod copy;
mod delete;
mod error;
mod expectation;
mod listing;
mod multipart;
mod objects;
mod operations;
mod owner;
mod part_list;
mod probes;
mod request;
mod request_id;
mod upload_list;
mod write;

pub(crate) use request::handle;
