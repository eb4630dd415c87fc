//! A part of a listing that was scanned, and whether it is still the same.

use xxhash_rust::xxh3::Xxh3;
use zarrd_store::{Key, MAX_PAGE_ENTRIES, PageRequest, Prefix};

use super::scanned_versions::ScannedVersions;
use crate::{context::Context, error::ArrayError};

/// The scanned keys below a prefix, up to the last, with a hash of them.
pub(super) struct ScannedPart {
    pub(super) prefix: Prefix,
    /// `None` if the scan reached the end of the prefix.
    pub(super) last: Option<Key>,
    pub(super) keys: usize,
    pub(super) hash: u128,
}

impl ScannedPart {
    /// True if the keys are the same now. Records the versions of documents.
    pub(super) async fn is_current(
        &self,
        context: &Context,
        mut versions: Option<&mut ScannedVersions>,
    ) -> Result<bool, ArrayError> {
        let mut hash = Xxh3::new();
        let (mut keys, mut page) = (0_usize, PageRequest::first(self.keys.clamp(1, MAX_PAGE_ENTRIES)));
        loop {
            let found = context.store.list_prefix(&self.prefix, page).await?;
            let is_scanned = |key: &Key| self.last.as_ref().is_none_or(|last| key <= last);
            for entry in found.keys.iter().take_while(|entry| is_scanned(&entry.key)) {
                note(&mut hash, &entry.key);
                keys += 1;
                if let Some(versions) = versions.as_mut() {
                    versions.record(entry);
                }
            }
            if keys > self.keys {
                return Ok(false);
            }
            let is_over = self.last.is_some() && found.keys.last().map(|entry| &entry.key) >= self.last.as_ref();
            match found.cursor.filter(|_| !is_over) {
                Some(cursor) => page = PageRequest::after(MAX_PAGE_ENTRIES, cursor),
                None => return Ok(keys == self.keys && hash.digest128() == self.hash),
            }
        }
    }
}

/// Adds a key to the hash of a part.
pub(super) fn note(hash: &mut Xxh3, key: &Key) {
    hash.update(key.as_bytes());
    hash.update(&[0]);
}
