//! Pieces that are being fetched, each by one reader for all.

use std::{
    collections::{HashMap, hash_map},
    ops::Range,
    sync::Arc,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, SetOnce};

use crate::{Key, Version};

/// The pieces of a store that are being fetched, by key and index. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims(Arc<Mutex<HashMap<(Key, u64), Claimed>>>);

#[derive(Debug)]
struct Claimed {
    version: Version,
    fetched: Arc<Fetched>,
}

/// A piece that is being fetched, or was.
#[derive(Debug)]
pub(super) struct Fetched {
    /// The bytes; `None` if they could not be fetched.
    bytes: SetOnce<Option<Bytes>>,
    /// The memory for them.
    _permit: OwnedSemaphorePermit,
}

/// Adjacent pieces of a value that the holder fetches. Those that it does not fetch before it is dropped have failed.
#[derive(Debug)]
pub(super) struct Claim {
    claims: Claims,
    key: Key,
    /// The first piece.
    first: u64,
    pieces: Vec<Arc<Fetched>>,
    /// The number of pieces that were fetched.
    done: usize,
}

impl Claims {
    /// The piece, if it is being fetched at this version.
    pub(super) fn find(&self, key: &Key, index: u64, version: Version) -> Option<Arc<Fetched>> {
        let claims = self.0.lock();
        let claimed = claims.get(&(key.clone(), index))?;
        (claimed.version == version).then(|| Arc::clone(&claimed.fetched))
    }

    /// True if the piece is being fetched, at any version.
    pub(super) fn contain(&self, key: &Key, index: u64) -> bool {
        self.0.lock().contains_key(&(key.clone(), index))
    }

    /// Claims pieces from the first of a range on, as many as there are permits for, up to one that is being fetched.
    pub(super) fn claim(
        &self,
        key: &Key,
        version: Version,
        range: Range<u64>,
        permits: impl IntoIterator<Item = OwnedSemaphorePermit>,
    ) -> Claim {
        let mut claims = self.0.lock();
        let mut pieces = Vec::new();
        for (index, permit) in range.clone().zip(permits) {
            let hash_map::Entry::Vacant(entry) = claims.entry((key.clone(), index)) else { break };
            let fetched = Arc::new(Fetched { bytes: SetOnce::new(), _permit: permit });
            entry.insert(Claimed { version, fetched: Arc::clone(&fetched) });
            pieces.push(fetched);
        }
        Claim { claims: self.clone(), key: key.clone(), first: range.start, pieces, done: 0 }
    }

    fn remove(&self, key: &Key, index: u64) {
        self.0.lock().remove(&(key.clone(), index));
    }
}

impl Fetched {
    /// Waits for the bytes of the piece; `None` if they could not be fetched.
    pub(super) async fn wait(&self) -> Option<Bytes> {
        self.bytes.wait().await.clone()
    }
}

impl Claim {
    /// The pieces in their order.
    pub(super) fn pieces(&self) -> &[Arc<Fetched>] {
        &self.pieces
    }

    /// The number of the next piece to fetch; `None` if all are fetched.
    pub(super) fn next(&self) -> Option<u64> {
        (self.done < self.pieces.len()).then(|| self.first.saturating_add(self.done as u64))
    }

    /// Passes the next piece to all who wait for it.
    pub(super) fn pass(&self, bytes: Bytes) {
        if let Some(piece) = self.pieces.get(self.done) {
            // Nobody else sets it.
            let _ = piece.bytes.set(Some(bytes));
        }
    }

    /// Ends the claim on the piece that was passed on, which is now found in the cache.
    pub(super) fn release(&mut self) {
        if let Some(index) = self.next() {
            self.claims.remove(&self.key, index);
        }
        self.done = self.done.saturating_add(1);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        while let Some(index) = self.next() {
            self.claims.remove(&self.key, index);
            if let Some(piece) = self.pieces.get(self.done) {
                // One that was passed on stays as it is.
                let _ = piece.bytes.set(None);
            }
            self.done = self.done.saturating_add(1);
        }
    }
}
