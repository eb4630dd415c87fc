//! Files that were waited for, which stay open for the reads that follow.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use zarrd_store::{Key, Version};

use crate::value_file::ValueFile;

/// The maximum number of files that stay open. The one that was kept first makes room for another.
const MAX_FILES: usize = 64;

/// The time for which a file stays open.
const TIME: Duration = Duration::from_secs(10);

/// Files that were not quiet when they were looked at, and have been since. By now their names may be those of other
/// files: a program that replaces a file more often than it becomes quiet would otherwise change it under every
/// snapshot, which has to look at a value before it reads it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept(Arc<Mutex<Files>>);

#[derive(Debug, Default)]
struct Files {
    files: VecDeque<(Instant, Version, ValueFile)>,
    /// True if a task closes files.
    closing: bool,
}

impl Kept {
    /// Keeps a file open that has been quiet with a version.
    pub(crate) fn keep(&self, version: Version, file: ValueFile) {
        let mut kept = self.0.lock();
        kept.files.retain(|(_, other, _)| *other != version);
        if kept.files.len() >= MAX_FILES {
            kept.files.pop_front();
        }
        kept.files.push_back((Instant::now(), version, file));
        if !std::mem::replace(&mut kept.closing, true) {
            tokio::spawn(self.clone().close());
        }
    }

    /// The file of a value of this version.
    pub(crate) fn find(&self, key: &Key, version: Version) -> Option<ValueFile> {
        let kept = self.0.lock();
        let mut found = kept.files.iter().filter(|(_, other, file)| *other == version && file.key == *key);
        found.next().map(|(.., file)| file.clone())
    }

    /// Closes files when their time is over, until there are none.
    async fn close(self) {
        loop {
            tokio::time::sleep(TIME).await;
            let mut kept = self.0.lock();
            kept.files.retain(|(since, ..)| since.elapsed() < TIME);
            if kept.files.is_empty() {
                kept.closing = false;
                return;
            }
        }
    }
}
