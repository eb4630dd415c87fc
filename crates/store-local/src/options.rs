//! How a store is opened.

use std::time::Duration;

use crate::{IndexKind, faults::SyncFault};

/// How a [`LocalStore`](crate::LocalStore) is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which index the store has. One that exists must have been made with the same.
    pub index: IndexKind,
    /// How much memory the index may use for its cache, in bytes.
    pub cache_bytes: u64,
    /// How many bytes of the file system are kept free of values, so that the index can go on when all others are
    /// taken. `None` is a twentieth of the file system, at least 16 MiB and at most 1 GiB.
    pub reserve_bytes: Option<u64>,
    /// How long a snapshot may be left without being read from before what it holds is given up.
    pub pin_timeout: Duration,
    /// True if the store may be changed. [`Access::ReadOnly`] writes nothing into the store's directory.
    pub access: Access,
    /// The purpose that the store is opened for.
    pub purpose: Purpose,
    /// The most memory that commits take that the log has and the index does not have yet, in bytes. Writers wait when it is
    /// full. `None` is 32 MiB, less on a small file system.
    pub commit_buffer_bytes: Option<u64>,
    /// The size of a segment of the log, in bytes. `None` is 16 MiB, less on a small file system.
    pub segment_bytes: Option<u64>,
    /// The size of a segment of sled's own files, in bytes: a power of two, for indexes that are made with it. `None` is 4 MiB,
    /// less on a small file system.
    pub index_segment_bytes: Option<u64>,
    /// The most bytes of replaced and erased values that are retained for readers that began before; beyond it the oldest
    /// reader is cut off. `None` is a tenth of the file system, at most 8 GiB.
    pub max_pinned_bytes: Option<u64>,
    /// Faults that a test causes.
    #[cfg(feature = "test-faults")]
    pub sync_fault: crate::SyncFault,
}

/// How a store is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// It is read and changed, by this process alone.
    #[default]
    ReadWrite,
    /// It is read, and nothing is written into its directory, which may be on a read-only file system.
    ReadOnly,
}

/// The purpose that a store is opened for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// To be used. One that is to be filled and was not filled to its end is refused.
    #[default]
    Use,
    /// To be filled with something that is of no use in part, such as a copy of another store. It must be a new one, and until
    /// [`LocalStore::complete`](crate::LocalStore::complete) every other opening is refused with
    /// [`OpenError::Incomplete`](crate::OpenError::Incomplete), also after a crash.
    Fill,
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
            #[cfg(feature = "test-faults")]
            sync_fault: crate::SyncFault::default(),
        }
    }
}

impl Options {
    /// The defaults, with this index.
    pub fn new(index: IndexKind) -> Self {
        Self { index, ..Self::default() }
    }

    #[cfg(feature = "test-faults")]
    pub(crate) fn sync_fault(&self) -> SyncFault {
        self.sync_fault.clone()
    }

    #[cfg(not(feature = "test-faults"))]
    #[expect(clippy::unused_self, reason = "as with the feature")]
    pub(crate) fn sync_fault(&self) -> SyncFault {
        SyncFault
    }
}
