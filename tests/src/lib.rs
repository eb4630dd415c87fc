//! The end-to-end tests of zarrd: they run the real program, and let other Zarr libraries use it.
//!
//! # Kinds of tests
//!
//! | kind | place | command |
//! |---|---|---|
//! | unit tests | `#[cfg(test)]` modules and `tests/` of each crate | `cargo test -p zarrd-array` |
//! | store conformance | `conformance` of `zarrd-store`, applied to every store; over HTTP in `tests/tests/conformance.rs` | `cargo test -p zarrd-tests --test conformance` |
//! | API contract | `openapi.yaml` against validators and generated requests | `cargo test -p zarrd-tests --test contract` |
//! | documentation | code blocks of the README, the benchmark summary, the module graph | `cargo test -p zarrd-tests --test readme --test module_graph` |
//! | foreign clients | `foreign_clients`, `foreign_readers`, `foreign_slices`, `document_patches`, `unmodified_clients` | `cargo test -p zarrd-tests --test foreign_clients` |
//! | malformed input | `malformed_data`, `rejected_requests`, `request_cost` | `cargo test -p zarrd-tests --test malformed_data` |
//! | damage | `corruption`, `failing_sync`, `failing_calls`, `full_disk`, `rejected_stores` | `cargo test -p zarrd-tests --test corruption` |
//! | crashes | `durability`, `kill_moments`, `interrupted_copy`, `interrupted_conversion`, `interrupted_erase` | `cargo run --release -p zarrd-tests --bin kill-loop` |
//! | crash states and power loss | `src/bin/crash-states`, `src/bin/power-loss` | `cargo run --release -p zarrd-tests --bin crash-states` |
//! | concurrency | `contention`, `races` | `cargo run --release -p zarrd-tests --bin races` |
//! | load | `crowds`, `memory`, `large_commits`, `file_descriptors` | `cargo run --release -p zarrd-tests --bin crowds` |
//! | cost search | `src/cost_search` | `cargo run --release -p zarrd-tests --bin cost-search` |
//! | soak | `src/soak` | `cargo run --release -p zarrd-tests --bin soak` |
//! | fuzzing | `fuzz/targets`; the corpora are replayed on stable | `cargo test -p zarrd-fuzz-targets`, `cd fuzz && cargo +nightly fuzz run decode` |
//! | benchmarks | `tests/benches/report` | `cargo bench -p zarrd-tests --bench report` |
//!
//! `.ci/run` runs the tests and a short round of every command except the benchmarks. Most commands have a test that runs
//! them briefly; each one prints its seed, with which the same random choices are made again.
//!
//! A test with requirements that the machine does not meet prints `SKIPPED` to stderr and passes; in CI it fails, see
//! [`skip`].
//!
//! # Shared modules
//!
//! - [`server`] starts a server on a free port, waits until it listens, and stops or kills it; [`binary`] locates or builds
//!   the program.
//! - [`problem`] checks problem documents; [`generated`] generates values of any size.
//! - [`python`], [`node`] and [`environment`] create environments with pinned versions of other libraries below `target/`;
//!   [`tools`] locates programs of the system.
//! - [`originals`] are arrays written by other libraries; [`slices`] compares them with responses of `/array`, and
//!   [`replica`] recreates them through the server, for other libraries to compare. [`sample`] serves files written by other
//!   libraries.
//! - [`disk`] mounts small file systems; [`shim`] compiles libraries that make system calls fail or wait.
//! - [`benchmark`] computes and renders the benchmark report; [`readme`] extracts and compares the README's code blocks.
//! - [`contention`], [`cost_search`], [`crowds`], [`failing_calls`], [`full_disk`], [`kill_loop`], [`kill_moments`],
//!   [`large_commits`], [`memory`], [`races`] and [`soak`] implement the long tests of the same names.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
#![allow(clippy::print_stderr, reason = "tests report on stderr")]

pub mod benchmark;
pub mod binary;
pub mod contention;
pub mod cost_search;
pub mod crowds;
pub mod disk;
pub mod environment;
pub mod failing_calls;
pub mod full_disk;
pub mod generated;
pub mod kill_loop;
pub mod kill_moments;
pub mod large_commits;
pub mod memory;
pub mod node;
pub mod originals;
pub mod problem;
pub mod python;
pub mod races;
pub mod readme;
pub mod replica;
pub mod sample;
pub mod server;
pub mod shim;
pub mod skip;
pub mod slices;
pub mod soak;
pub mod tools;
