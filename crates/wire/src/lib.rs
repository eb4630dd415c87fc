//! The HTTP contract that server and client share, without any I/O.
//!
//! Each module renders and parses one kind of text, so both sides agree on it: [`routes`] the paths, [`query`] the
//! query parameters, [`array`](mod@array) formats and what is said of elements, [`picture`] the colours
//! of pictures, [`headers`] the names of headers and
//! media types, [`etag`] and [`range`] the conditional and partial requests, [`digest`] the digests of bodies,
//! [`chunks`] the chunks that a selection touches, [`dav`] WebDAV, [`elements`] what the bodies of elements are made of, [`time`] the times, [`listing`], [`value_listing`],
//! [`node`], [`snapshot`] and [`health`] the
//! JSON of answers, and [`problem`] everything that can be wrong with a request, of which [`rejection`] has what
//! concerns nodes.

pub mod access;
pub mod array;
pub mod attributes;
pub mod chunks;
pub mod dav;
pub mod digest;
pub mod elements;
pub mod etag;
pub mod headers;
pub mod health;
pub mod listing;
pub mod near;
pub mod node;
pub mod picture;
pub mod problem;
pub mod query;
pub mod range;
pub mod rejection;
pub mod routes;
pub mod snapshot;
pub mod time;
pub mod value_listing;
