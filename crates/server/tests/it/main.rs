//! The integration tests of this crate, in one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod answer_notes;
mod array_chunks;
mod array_create;
mod array_errors;
mod array_ranges;
mod array_read;
mod array_write;
mod broken_documents;
mod broken_nodes;
#[path = "../common/mod.rs"]
mod common;
mod connections;
mod cors_and_hosts;
mod credentials;
mod csv_format;
mod datasets;
mod element_bodies;
mod element_conversions;
mod freshness;
mod generated_requests;
mod images;
mod key_by_key;
mod labels;
mod listings;
mod masked_arrays;
mod memory_sharing;
mod monitoring;
mod mounts;
mod node_errors;
mod node_read;
mod node_write;
mod openapi;
mod page;
mod read_only_store;
mod reductions;
mod repeated_names;
mod request_logs;
mod rights;
mod s3;
mod snapshots;
mod statuses;
mod store_errors;
mod time_bounds;
mod tls;
mod value_reads;
mod value_writes;
mod webdav;
mod wide_times;
