//! How a store is opened.

use std::time::Duration;

use crate::IndexKind;

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
}

impl Default for Options {
    fn default() -> Self {
        Self {
            index: IndexKind::Sled,
            cache_bytes: 128 << 20,
            reserve_bytes: None,
            pin_timeout: Duration::from_secs(300),
        }
    }
}

impl Options {
    /// The defaults, with this index.
    pub fn new(index: IndexKind) -> Self {
        Self { index, ..Self::default() }
    }
}
