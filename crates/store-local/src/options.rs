//! Options of opening a store.

use std::time::Duration;

use crate::{IndexKind, faults::SyncFault};

/// Options of opening a [`LocalStore`](crate::LocalStore).
#[derive(Clone, Debug)]
pub struct Options {
    /// The kind of index. It must match an existing store.
    pub index: IndexKind,
    /// The memory limit of the index's cache, in bytes.
    pub cache_bytes: u64,
    /// The space of the file system that values may not use, in bytes, so that the index can always be written. `None`
    /// is a twentieth of the file system, at least 16 MiB and at most 1 GiB.
    pub reserve_bytes: Option<u64>,
    /// The time after which an unused snapshot expires.
    pub pin_timeout: Duration,
    /// The access mode. [`Access::ReadOnly`] writes nothing into the store's directory.
    pub access: Access,
    /// The purpose of opening the store.
    pub purpose: Purpose,
    /// The maximum memory of commits that are in the log and not yet in the index, in bytes. Writers wait when it is
    /// full. `None` is 32 MiB, less on a small file system.
    pub commit_buffer_bytes: Option<u64>,
    /// The size of a segment of the log, in bytes. `None` is 16 MiB, less on a small file system.
    pub segment_bytes: Option<u64>,
    /// The size of a segment of a new sled index, in bytes; a power of two. `None` is 4 MiB, less on a small file
    /// system.
    pub index_segment_bytes: Option<u64>,
    /// The maximum size of replaced and erased values that are retained for readers, in bytes. Beyond it, the oldest
    /// reader expires. `None` is a tenth of the file system, at most 8 GiB.
    pub max_pinned_bytes: Option<u64>,
    /// The maximum size of replaced and erased values that are retained for snapshots of prefixes, in bytes. Beyond it,
    /// the oldest one ends. `None` is a tenth of the file system.
    pub max_snapshot_bytes: Option<u64>,
    /// The size from which the value of an upload is made of the files of its parts, in bytes. Copying less than the default,
    /// 16 MiB, takes some 30 ms, and a value in one file is read faster ever after.
    pub min_joined_bytes: u64,
    /// The interval between the starts of scrubs, while the store is open for writing; `None` for none.
    pub scrub: Option<Duration>,
    /// Faults for tests.
    #[cfg(debug_assertions)]
    pub sync_fault: crate::SyncFault,
}

/// The access mode of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Reads and writes, by this process alone.
    #[default]
    ReadWrite,
    /// Reads only. Nothing is written into the directory, which may be on a read-only file system.
    ReadOnly,
}

/// The purpose of opening a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// Regular use. Fails with [`OpenError::Incomplete`](crate::OpenError::Incomplete) if the store was never filled
    /// completely.
    #[default]
    Use,
    /// Filling a new store with data that is useless in part, such as a copy of another store. Until
    /// [`LocalStore::complete`](crate::LocalStore::complete), opening it again for another purpose than
    /// [`Self::Resume`] fails with [`OpenError::Incomplete`](crate::OpenError::Incomplete), even after a crash.
    Fill(Option<StoreState>),
    /// Filling a new store, or one that was opened with [`Self::Fill`] from the same state of the same store and never
    /// completed. Fails with [`OpenError::OtherSource`](crate::OpenError::OtherSource) if it was filled from another.
    Resume(StoreState),
}

/// The state of a store after one of its commits. Opening a store for writing changes it too, since the versions of each
/// opening begin anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreState {
    pub(crate) store_id: u64,
    pub(crate) commit: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            index: IndexKind::Sled,
            cache_bytes: 128 << 20,
            reserve_bytes: None,
            pin_timeout: Duration::from_secs(300),
            access: Access::ReadWrite,
            purpose: Purpose::Use,
            commit_buffer_bytes: None,
            segment_bytes: None,
            index_segment_bytes: None,
            max_pinned_bytes: None,
            max_snapshot_bytes: None,
            min_joined_bytes: 16 << 20,
            scrub: None,
            #[cfg(debug_assertions)]
            sync_fault: crate::SyncFault::default(),
        }
    }
}

impl Options {
    /// The default options with this kind of index.
    pub fn new(index: IndexKind) -> Self {
        Self { index, ..Self::default() }
    }

    #[cfg(debug_assertions)]
    pub(crate) fn sync_fault(&self) -> SyncFault {
        self.sync_fault.clone()
    }

    #[cfg(not(debug_assertions))]
    #[expect(clippy::unused_self, reason = "as in debug builds")]
    pub(crate) fn sync_fault(&self) -> SyncFault {
        SyncFault
    }
}
