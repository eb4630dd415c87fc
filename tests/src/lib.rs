//! The end-to-end tests of zarrd: they run the real program, and let other Zarr libraries use it.
//!
//! # Kinds of tests
//!
//! - Unit tests, in `#[cfg(test)]` modules and the `tests` folder of each crate: `cargo test -p zarrd-array`.
//! - Store conformance: the suite of `zarrd-store-testkit` is applied to every store, and over HTTP by
//!   `cargo test -p zarrd-tests --test it conformance`.
//! - API contract, `openapi.yaml` against validators and generated requests:
//!   `cargo test -p zarrd-tests --test it contract`.
//! - Documentation (code blocks, links, lengths, tables of the reference) and module graph and the steps in the log:
//!   `cargo test -p zarrd-tests --test it -- readme documents module_graph steps`.
//! - Foreign clients, `foreign_clients`, `foreign_readers`, `foreign_slices`, `document_patches` and
//!   `unmodified_clients`: `cargo test -p zarrd-tests --test it foreign_clients`; with all that they can write instead of
//!   a sample: `cargo run --release -p zarrd-tests -- foreign-arrays`.
//! - Data that are written in place, `written_buckets`, `written_directory`, `failing_folder` and `foreign_in_place`:
//!   `cargo test -p zarrd-tests --test it -- written_ failing_folder foreign_in_place`.
//! - Data of other programs, `foreign_bucket`, `foreign_directory`, `foreign_site`, `foreign_mounts` and
//!   `foreign_commands`: `cargo test -p zarrd-tests --test it foreign_bucket`.
//! - Proxies in front of the server, `proxies`, and tokens under load, `token_rotation`:
//!   `cargo test -p zarrd-tests --test it -- proxies token_rotation`.
//! - The page, in Chromium with playwright-core and axe-core: `cargo test -p zarrd-tests --test it page`.
//! - Malformed requests, `malformed_data` and `rejected_requests`:
//!   `cargo test -p zarrd-tests --test it malformed_data`.
//! - Time, measured while nothing else runs, `request_cost` and `interrupted_erase`:
//!   `cargo test -p zarrd-tests --test quiet`.
//! - Damage and failing disks, `corruption`, `failing_sync`, `failing_calls`, `full_disk` and `rejected_stores`:
//!   `cargo test -p zarrd-tests --test it corruption`.
//! - Crashes, `durability`, `kill_moments` and `interrupted_*`: `cargo run --release -p zarrd-tests -- kill-loop`.
//! - A cluster of Garage under servers, which are killed, with the nodes: `cargo run --release -p zarrd-tests --
//!   garage-cluster`. Garage has to be installed; the command prints how.
//! - Crash states and power loss, in `src/bin`: `cargo run --release -p zarrd-tests -- crash-states`, `power-loss`; those of
//!   folders that are written: `crash-states folder`.
//! - Races, `races` and `contention`: `cargo run --release -p zarrd-tests -- races`, `contention`; of two servers over one
//!   bucket: `races --engines bucket`; of a folder that other libraries write: `shared-folder`.
//! - Crowds and memory, `crowds`, `memory`, `large_commits`: `cargo run --release -p zarrd-tests -- crowds`.
//! - Expensive requests, found by a search: `cargo run --release -p zarrd-tests -- cost-search`.
//! - Soak, an hour by default: `cargo run --release -p zarrd-tests -- soak`.
//! - Fuzzing, targets in `fuzz/targets`: `cargo test -p zarrd-fuzz-targets` replays the corpora on stable;
//!   `scripts/dev fuzz decode` searches for new inputs.
//! - Benchmarks, in `benches/report`: `cargo bench -p zarrd-tests --bench report`.
//!
//! `.ci/run` runs the tests and a short round of every command except `garage-cluster` and the benchmarks. Most commands have a test that
//! runs them briefly; each one prints its seed, with which the same random choices are made again.
//!
//! A test with requirements that the machine does not meet passes and is named after the program's tests; in CI it fails,
//! see [`skip`].
//!
//! # Shared modules
//!
//! - [`server`] starts a server on a free port, waits until it listens, and stops or kills it; [`binary`] locates or
//!   builds the program.
//! - [`arguments`] parses the command lines of the long tests.
//! - [`problem`] checks problem documents; [`generated`] generates values of any size.
//! - [`python`], [`node`] and [`environment`] create environments with pinned versions of other libraries in
//!   `~/.cache/zarrd`; [`tools`] locates programs of the system.
//! - [`originals`] are arrays written by other libraries; [`slices`] compares them with responses of `/array`, and
//!   [`replica`] recreates them through the server, for other libraries to compare. [`sample`] serves files written by
//!   other libraries, which [`bucket`] does as S3 and [`site`] with nginx; [`garage`] starts clusters of Garage, and
//!   [`distant_bucket`] is a bucket that is slow, or fails, and [`written_bucket`] one that is written.
//! - [`disk`] mounts small file systems; [`store_files`] copies stores; [`shim`] compiles libraries that make system
//!   calls fail or wait.
//! - [`benchmark`] computes and renders the benchmark report; [`readme`] extracts and compares code blocks of the
//!   documents, and measures their paragraphs and links.
//! - [`contention`], [`cost_search`], [`crowds`], [`failing_calls`], [`full_disk`], [`kill_loop`], [`kill_moments`],
//!   [`large_commits`], [`memory`], [`races`], [`shared_folder`] and [`soak`] implement the long tests of the same names, and
//!   [`bucket_failures`] that of `garage-cluster`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
#![allow(clippy::print_stderr, reason = "tests report on stderr")]

pub mod arguments;
pub mod benchmark;
pub mod binary;
pub mod browser;
pub mod bucket;
pub mod bucket_failures;
pub mod contention;
pub mod cost_search;
pub mod crowds;
pub mod dense;
pub mod disk;
pub mod distant_bucket;
pub mod environment;
pub mod eventually;
pub mod failing_calls;
pub mod foreign_arrays;
pub mod full_disk;
pub mod garage;
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
pub mod shared_folder;
pub mod shim;
pub mod site;
pub mod skip;
pub mod slices;
pub mod soak;
pub mod store_files;
pub mod tools;
pub mod written_bucket;
