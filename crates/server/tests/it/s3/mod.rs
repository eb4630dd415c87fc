//! The S3 surface: rights, signatures, bodies, conditions, and what is refused.

mod bodies;
mod client;
mod objects;
mod rights;
mod signatures;
