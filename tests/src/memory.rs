//! Memory must not grow with the size of a transferred value or region.

mod elements;
mod reduction;

use std::path::Path;

use tokio::task::JoinSet;
use zarrd_store::{Key, Precondition, ReadableStore, WriteableStore};

use crate::{generated::Generated, server::Launch};
use elements::Chunks;
pub use reduction::ReductionPeak;

/// The peak memory limit of the server while it transfers values, in bytes.
pub const LIMIT: u64 = 150 << 20;

/// The peak memory limit while it transfers elements, in bytes: the configured array memory plus everything else.
pub const ELEMENTS_LIMIT: u64 = LIMIT + (MAX_MEMORY_MIB << 20);

/// The memory that the reduction of a whole array may take above that of the idle server, in bytes.
pub const REDUCTION_LIMIT: u64 = 128 << 20;

/// The configured array memory of the server.
const MAX_MEMORY_MIB: u64 = 128;

/// The sizes of the transfers, and of the array that is reduced. Those of 0 are left out.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The size of the single large value, in bytes.
    pub large: u64,
    /// The number of concurrent downloads.
    pub downloads: u32,
    /// The size of the value that they download, in bytes.
    pub download_size: u64,
    /// The size of each array that is written with one request, in bytes.
    pub array: u64,
    /// The size of the array that is reduced, in bytes.
    pub reduced: u64,
}

/// The server's peaks so far, in bytes.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// After the start.
    pub start: u64,
    /// After the upload.
    pub upload: u64,
    /// After the download.
    pub download: u64,
    /// After the concurrent downloads.
    pub downloads: u64,
    /// After writing each array, with the layout of its chunks. Each array has a server of its own.
    pub arrays: Vec<(&'static str, u64)>,
    /// While an array is reduced. Each function has a server of its own.
    pub reductions: Vec<ReductionPeak>,
}

/// Runs the uploads and downloads with new stores in `dir`.
///
/// # Panics
///
/// If a value or an array is read back differently.
pub async fn run(plan: Plan, dir: &Path) -> Report {
    let mut report = Report::default();
    if plan.large > 0 {
        report = values(plan, &dir.join("values")).await;
    }
    for chunks in Chunks::ALL.into_iter().filter(|_| plan.array > 0) {
        let place = dir.join(chunks.name());
        report.arrays.push((chunks.name(), elements::write(chunks, plan.array, &place).await));
        std::fs::remove_dir_all(place).expect("the store can be removed");
    }
    if plan.reduced > 0 {
        report.reductions = reduction::reduce(plan.reduced, &dir.join("reduced")).await;
    }
    report
}

async fn values(plan: Plan, dir: &Path) -> Report {
    let server = Launch::sled(dir).start();
    let store = server.store();
    let start = server.peak_memory();

    let (key, large) = (key("large"), Generated::new(1, plan.large));
    store.set(&key, large.content(), Precondition::none()).await.expect("a large upload");
    let upload = server.peak_memory();
    large
        .compare(store.get(&key, None).await.expect("a large download").expect("the value exists"))
        .await
        .expect("a complete value");
    let download = server.peak_memory();

    let download_size = Generated::new(2, plan.download_size);
    let shared = self::key("shared");
    store.set(&shared, download_size.content(), Precondition::none()).await.expect("an upload");
    let mut running = JoinSet::new();
    for _ in 0..plan.downloads {
        let (store, key, download_size) = (store.clone(), shared.clone(), download_size.clone());
        running.spawn(async move {
            let value = store.get(&key, None).await.expect("a download").expect("the value exists");
            download_size.compare(value).await.expect("a complete value");
        });
    }
    while let Some(done) = running.join_next().await {
        done.expect("a download is right");
    }
    let downloads = server.peak_memory();
    server.stop();
    std::fs::remove_dir_all(dir).expect("the store can be removed");
    Report { start, upload, download, downloads, arrays: Vec::new(), reductions: Vec::new() }
}

impl Report {
    /// True if the server stayed below the limits.
    pub fn is_within_limit(&self) -> bool {
        let reduced = self.reductions.iter().all(|reduced| reduced.peak <= reduced.idle + REDUCTION_LIMIT);
        self.downloads < LIMIT && self.arrays.iter().all(|(_, peak)| *peak < ELEMENTS_LIMIT) && reduced
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        write!(
            f,
            "peak memory of the server: {:.1} MiB after the start, {:.1} after the upload, {:.1} after the download, \
             {:.1} after the downloads at the same time; the limit is {:.0}",
            mib(self.start),
            mib(self.upload),
            mib(self.download),
            mib(self.downloads),
            mib(LIMIT)
        )?;
        for (name, peak) in &self.arrays {
            write!(f, "\nafter writing the elements of an array, chunks {name}: {:.1} MiB", mib(*peak))?;
        }
        write!(f, "; the limit is {:.0}", mib(ELEMENTS_LIMIT))?;
        for ReductionPeak { function, idle, peak } in &self.reductions {
            let above = peak.saturating_sub(*idle);
            write!(f, "\n{function} of an array: {:.1} MiB idle, {:.1} above at the peak", mib(*idle), mib(above))?;
        }
        write!(f, "; the limit is {:.0}", mib(REDUCTION_LIMIT))
    }
}

fn key(text: &str) -> Key {
    Key::parse(text).expect("a key")
}
