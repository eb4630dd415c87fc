//! The adapter for the `zarrs` crate, with stores in memory and over HTTP.

// `cfg(test)` lets Clippy accept panics in the helpers of tests.
#[cfg(test)]
mod arrays;
#[cfg(test)]
mod recording_store;
#[cfg(test)]
mod storage;
#[cfg(test)]
#[path = "../test_server/mod.rs"]
mod test_server;
