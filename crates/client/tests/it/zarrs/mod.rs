//! The adapter for the `zarrs` crate, with stores in memory and over HTTP.

mod arrays;
mod object_store;
mod recording_store;
mod slices;
mod storage;
