//! The integration tests of this crate, in one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod attributes;
mod backups;
mod browsers;
mod build_cache;
mod command_line;
mod compact;
mod conditional_dates;
mod conformance;
mod connections;
mod contention;
mod contract;
mod converted_masks;
mod copied_tags;
mod corruption;
mod damage;
mod datasets;
mod disk_cache;
mod document_patches;
mod documents;
mod durability;
mod failing_calls;
mod failing_folder;
mod failing_sync;
mod file_descriptors;
mod foreign_bucket;
mod foreign_clients;
mod foreign_commands;
mod foreign_directory;
mod foreign_mounts;
mod foreign_readers;
mod foreign_site;
mod foreign_slices;
mod foreign_writers;
mod full_disk;
mod golden;
mod inside_documents;
mod interrupted_conversion;
mod interrupted_copy;
mod interrupted_transfer;
mod interrupted_uploads;
mod keepers;
mod kill_moments;
mod labels;
mod large_trees;
mod malformed_data;
mod memory;
mod module_graph;
mod page;
mod pictures;
mod proxies;
mod python_package;
mod races;
mod read_only;
mod readme;
mod reductions;
mod rejected_requests;
mod rejected_stores;
mod s3;
mod startup;
mod steps;
mod store_lock;
mod test_runner;
mod token_rotation;
mod unmodified_clients;
mod webdav;
mod written_buckets;
mod written_directory;
