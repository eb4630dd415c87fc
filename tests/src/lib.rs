//! What the end-to-end tests share: they run the real `zarrd`, and let other Zarr libraries talk to it.
//!
//! - [`server`] starts a server on a free port, waits until it listens, and stops or kills it; [`binary`] finds or builds the program.
//! - [`python`] and [`node`] make environments with pinned versions of other libraries below `target/`, once.
//! - [`answer`] checks problem documents.
//! - [`benchmark`] has the arithmetic and the text of the benchmarks' report.
//! - [`content`] makes values of any size that can be checked without being kept.
//! - [`contention`], [`crowds`], [`full_disk`], [`kill_loop`], [`kill_moments`] and [`memory`] are long measurements, each a short test and a command of
//!   its own.
//! - [`cost_search`] looks for the requests that cost most.
//! - [`disk`] mounts small file systems; [`shim`] makes libraries that change what system calls do, and [`failing_calls`] lets each call fail.
//! - [`races`] has writes race with what changes or copies their array.
//! - [`readme`] runs what the README says.
//! - [`sample`] has files that other libraries wrote, and a server of them; [`tools`] finds the system's programs that download them.
//! - [`shim`] makes libraries that have the system fail or wait.
//! - [`soak`] has legal and hostile clients for a long time.
//! - [`originals`] are what other libraries wrote, kept below `target/`; [`slices`] compares it with what `/array` answers, and [`mirror`] creates and writes it
//!   once more through the server, for other libraries to compare.
//!
//! A test whose needs the machine does not meet says so on stderr and passes; in CI it fails, see [`skip`].

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
#![allow(clippy::print_stderr, reason = "tests speak on stderr")]

pub mod answer;
pub mod benchmark;
pub mod binary;
pub mod content;
pub mod contention;
pub mod cost_search;
pub mod crowds;
pub mod disk;
pub mod environment;
pub mod failing_calls;
pub mod full_disk;
pub mod kill_loop;
pub mod kill_moments;
pub mod large_commits;
pub mod memory;
pub mod mirror;
pub mod node;
pub mod originals;
pub mod python;
pub mod races;
pub mod readme;
pub mod sample;
pub mod server;
pub mod shim;
pub mod skip;
pub mod slices;
pub mod soak;
pub mod tools;
