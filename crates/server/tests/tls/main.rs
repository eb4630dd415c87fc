//! TLS and HTTP/2.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "clippy exempts test functions only, and these have helpers"
)]

#[path = "../common/mod.rs"]
mod common;

mod certificates;
mod frames;
mod handshakes;
mod http2;
mod http2_abuse;
mod reload;
mod tls_server;
