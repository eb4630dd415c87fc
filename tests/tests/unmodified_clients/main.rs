//! Clients that know nothing of zarrd, as Debian, PyPI and npm have them: they find and read what other libraries wrote.
//!
//! What a client cannot do is pinned as well, with the client's own reason.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod browser;
mod downloads;
mod gdal;
mod libraries;
