//! The S3 surface: rights, signatures, bodies, conditions, and what is refused.

mod bodies;
pub(crate) mod client;
mod objects;
mod refusals;
mod rights;
mod signatures;
