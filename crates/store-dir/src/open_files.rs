//! Files that were waited for, which stay open for the reads that follow.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use zarrd_store::{Key, Version};

use crate::value_file::ValueFile;

/// The maximum number of files that stay open. The oldest makes room for another.
const MAX_FILES: usize = 64;

/// The time for which a file stays open.
const TIME: Duration = Duration::from_secs(10);

/// Files that were not quiet when their attributes were read, and have been since. By now their names may belong to
/// other files: a program that replaces a file more often than it becomes quiet would otherwise change it under every
/// snapshot, which reads the attributes of a value before its bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenFiles(Arc<Mutex<Files>>);

#[derive(Debug, Default)]
struct Files {
    files: VecDeque<(Instant, Version, ValueFile)>,
    /// True if a task closes files.
    closing: bool,
}

impl OpenFiles {
    /// Keeps a file open that has been quiet with a version.
    pub(crate) fn insert(&self, version: Version, file: ValueFile) {
        let mut open = self.0.lock();
        open.files.retain(|(_, other, _)| *other != version);
        if open.files.len() >= MAX_FILES {
            open.files.pop_front();
        }
        open.files.push_back((Instant::now(), version, file));
        if !std::mem::replace(&mut open.closing, true) {
            tokio::spawn(self.clone().close());
        }
    }

    /// The file of a value of this version.
    pub(crate) fn find(&self, key: &Key, version: Version) -> Option<ValueFile> {
        let open = self.0.lock();
        let mut found = open.files.iter().filter(|(_, other, file)| *other == version && file.key == *key);
        found.next().map(|(.., file)| file.clone())
    }

    /// Closes files when their time is over, until there are none.
    async fn close(self) {
        loop {
            tokio::time::sleep(TIME).await;
            let mut open = self.0.lock();
            open.files.retain(|(since, ..)| since.elapsed() < TIME);
            if open.files.is_empty() {
                open.closing = false;
                return;
            }
        }
    }
}
