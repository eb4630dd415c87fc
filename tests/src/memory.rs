//! Memory: it must not grow with the size of what goes through the server, be it a value or the elements of a region.

mod elements;

use std::path::Path;

use store::{Key, Precondition, ReadableStore, WriteableStore};
use tokio::task::JoinSet;

use crate::{content::Generated, server::Launch};
use elements::Chunks;

/// The most memory that the server may ever have while values go through it, in bytes.
pub const LIMIT: u64 = 150 << 20;

/// The most memory that it may have while elements go through it, in bytes: what it is told that it may take for arrays, and all else.
pub const LIMIT_FOR_ELEMENTS: u64 = LIMIT + (MAX_MEMORY_MIB << 20);

/// What the server is told that it may take for arrays.
const MAX_MEMORY_MIB: u64 = 128;

/// What is moved.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The size of the one large value, in bytes.
    pub large: u64,
    /// How many downloads there are at the same time.
    pub downloads: u32,
    /// The size of the value that they download, in bytes.
    pub each: u64,
    /// The size of each array that is written with one request, in bytes.
    pub array: u64,
}

/// The server's peaks so far, in bytes.
#[derive(Clone, Debug)]
pub struct Report {
    /// When it had started.
    pub start: u64,
    /// After the upload.
    pub upload: u64,
    /// After the download.
    pub download: u64,
    /// After the downloads at the same time.
    pub downloads: u64,
    /// After each array was written, with how its chunks lie in the order of the elements. Each has a server of its own.
    pub arrays: Vec<(&'static str, u64)>,
}

/// Uploads and downloads, with new stores in `dir`.
///
/// # Panics
///
/// Where a value or an array comes back as another.
pub async fn run(plan: Plan, dir: &Path) -> Report {
    let mut report = values(plan, &dir.join("values")).await;
    for chunks in Chunks::ALL {
        let place = dir.join(chunks.name());
        report.arrays.push((chunks.name(), elements::write(chunks, plan.array, &place).await));
        std::fs::remove_dir_all(place).expect("the store can be removed");
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
        .compare(store.get(&key, None).await.expect("a large download").expect("it is there"))
        .await
        .expect("it is whole");
    let download = server.peak_memory();

    let each = Generated::new(2, plan.each);
    let shared = self::key("shared");
    store.set(&shared, each.content(), Precondition::none()).await.expect("an upload");
    let mut running = JoinSet::new();
    for _ in 0..plan.downloads {
        let (store, key, each) = (store.clone(), shared.clone(), each.clone());
        running.spawn(async move {
            let value = store.get(&key, None).await.expect("a download").expect("it is there");
            each.compare(value).await.expect("it is whole");
        });
    }
    while let Some(done) = running.join_next().await {
        done.expect("a download is right");
    }
    let downloads = server.peak_memory();
    server.stop();
    std::fs::remove_dir_all(dir).expect("the store can be removed");
    Report { start, upload, download, downloads, arrays: Vec::new() }
}

impl Report {
    /// Whether the server stayed below the limits.
    pub fn is_within_limit(&self) -> bool {
        self.downloads < LIMIT && self.arrays.iter().all(|(_, peak)| *peak < LIMIT_FOR_ELEMENTS)
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
        write!(f, "; the limit is {:.0}", mib(LIMIT_FOR_ELEMENTS))
    }
}

fn key(text: &str) -> Key {
    Key::parse(text).expect("a key")
}
