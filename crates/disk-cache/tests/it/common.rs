//! Caches and pieces of tests.

use std::path::Path;

use bytes::Bytes;
use zarrd_disk_cache::{DiskCache, Options};
use zarrd_store::{Key, PIECE_LEN, PieceCache, PieceId, StoreId, Version};

/// Four blocks of 4 MiB.
pub(crate) const SMALL: Options = Options { size: 16 << 20, block_len: 4 << 20 };

pub(crate) async fn open(path: &Path) -> DiskCache {
    DiskCache::open(path, SMALL).await.unwrap()
}

pub(crate) fn id(key: &str, version: u128, index: u64) -> PieceId {
    PieceId { store: StoreId::of("s3://b/"), key: key.parse_key(), version: Version::from_u128(version), index }
}

/// Bytes that no other piece has.
pub(crate) fn bytes_of(id: &PieceId, len: u64) -> Bytes {
    let seed = format!("{id:?}");
    let mut bytes = seed.repeat(len as usize / seed.len() + 1).into_bytes();
    bytes.truncate(len as usize);
    bytes.into()
}

/// Inserts pieces with their bytes, of 1 MiB each, and waits until they are written.
pub(crate) async fn fill(cache: &DiskCache, ids: &[PieceId]) {
    for id in ids {
        cache.insert(id.clone(), bytes_of(id, PIECE_LEN)).await;
    }
    cache.flush().await;
}

/// The number of pieces that are found. What is found has the right bytes.
pub(crate) async fn found(cache: &DiskCache, ids: &[PieceId]) -> usize {
    let mut count = 0;
    for id in ids {
        if let Some(bytes) = cache.get(id).await {
            assert!(bytes == bytes_of(id, PIECE_LEN), "{id:?}");
            count += 1;
        }
    }
    count
}

trait ParseKey {
    fn parse_key(&self) -> Key;
}

impl ParseKey for str {
    fn parse_key(&self) -> Key {
        Key::parse(self).unwrap()
    }
}
