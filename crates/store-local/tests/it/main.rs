//! The integration tests of this crate, in one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod conformance;
mod faults;
mod incomplete;
mod joined;
mod prefix_snapshots;
mod recover;
mod scrub;
mod space;
mod sweeping;
mod uploads;

/// Makes a pipe. A program that does so would be a fork of this one, and have the locks of stores that other tests close.
fn make_pipe(path: &std::path::Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}
