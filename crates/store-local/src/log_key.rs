//! The key of the log's checksums.

use xxhash_rust::xxh3::Xxh3;

/// Seeds the checksums of a store's log. Without the store's secret, no client can craft bytes that pass them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogKey {
    store_id: u64,
    secret: u64,
}

impl LogKey {
    pub(crate) const fn new(store_id: u64, secret: u64) -> Self {
        Self { store_id, secret }
    }

    /// A checksum for one file of the log.
    pub(crate) fn checksum(self, file: u64, parts: &[&[u8]]) -> u64 {
        let mut hash = Xxh3::with_seed(self.secret);
        hash.update(&self.store_id.to_be_bytes());
        hash.update(&file.to_be_bytes());
        for part in parts {
            hash.update(part);
        }
        hash.digest()
    }
}
