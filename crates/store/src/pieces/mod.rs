//! A cache of pieces of values, which outlives the process, and the store that reads through it.

mod claims;
mod reader;
mod request;
mod store;

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::Semaphore;
use xxhash_rust::xxh3::xxh3_128;

pub use self::store::PieceStore;
use crate::{Key, Version};

/// The length of a piece in bytes. The last piece of a value may be shorter.
pub const PIECE_LEN: u64 = 1 << 20;

/// The number of pieces that may be fetched ahead of their readers, of all stores together: 64 MiB.
const FETCHED_AHEAD: usize = 64;

/// A piece of a value: its bytes from `index` times [`PIECE_LEN`] on. The bytes of a piece never change, since another
/// value has another version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PieceId {
    /// The store that has the value.
    pub store: StoreId,
    /// The key of the value.
    pub key: Key,
    /// The version of the value.
    pub version: Version,
    /// The number of the piece in the value.
    pub index: u64,
}

/// A store among those whose pieces are in one cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StoreId(u128);

/// A cache of pieces of values.
#[async_trait]
pub trait PieceCache: fmt::Debug + Send + Sync {
    /// True if the piece may be cached. It takes no time, and may be wrong.
    fn may_contain(&self, piece: &PieceId) -> bool;

    /// True if the first piece of a value of `key` may be cached, in whatever version. It takes no time, and may be wrong.
    fn may_contain_key(&self, store: StoreId, key: &Key) -> bool;

    /// Returns the bytes of a piece, exactly as they were inserted, or `None` if they are not cached or damaged.
    async fn get(&self, piece: &PieceId) -> Option<Bytes>;

    /// Caches a piece that was fetched from its store. Waits while too much is being written; a piece that cannot be
    /// cached is left out.
    async fn insert(&self, piece: PieceId, bytes: Bytes);

    /// The state of the cache.
    fn status(&self) -> PieceCacheStatus;
}

/// The state of a cache of pieces: counters since it was opened, and its size now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PieceCacheStatus {
    /// Pieces that were read from the cache.
    pub hits: u64,
    /// Pieces that were fetched from their stores, since they were not cached.
    pub misses: u64,
    /// Bytes of pieces that were read from the cache.
    pub read_bytes: u64,
    /// Bytes of pieces that were written to the cache.
    pub written_bytes: u64,
    /// Pieces that were not written to the cache, or not read from it, because of an error or since the disk is too slow.
    pub failures: u64,
    /// Cached pieces that were damaged.
    pub damaged: u64,
    /// Pieces that were written to the cache.
    pub written: u64,
    /// The space that is in use, in bytes.
    pub used_bytes: u64,
    /// The space that the cache may take, in bytes.
    pub capacity_bytes: u64,
}

/// A cache of pieces that stores share. Clones share it.
#[derive(Clone, Debug)]
pub struct Pieces {
    cache: Arc<dyn PieceCache>,
    /// A permit for each piece that is fetched ahead of its reader.
    memory: Arc<Semaphore>,
}

/// The pieces of one store in a cache.
#[derive(Clone, Debug)]
pub struct StorePieces {
    pieces: Pieces,
    store: StoreId,
}

impl StoreId {
    /// The store of this name: its URL, with everything that chooses the service, such as an endpoint.
    pub fn of(name: &str) -> Self {
        Self(xxh3_128(name.as_bytes()))
    }

    /// The number of the store.
    pub const fn as_u128(self) -> u128 {
        self.0
    }

    /// The store with a number that [`as_u128`](Self::as_u128) returned.
    pub const fn from_u128(number: u128) -> Self {
        Self(number)
    }
}

impl Pieces {
    /// Shares a cache.
    pub fn new(cache: Arc<dyn PieceCache>) -> Self {
        Self { cache, memory: Arc::new(Semaphore::new(FETCHED_AHEAD)) }
    }

    /// The pieces of the store of this name: its URL, with everything that chooses the service, such as an endpoint.
    pub fn of_store(&self, name: &str) -> StorePieces {
        StorePieces { pieces: self.clone(), store: StoreId::of(name) }
    }

    /// The state of the cache.
    pub fn status(&self) -> PieceCacheStatus {
        self.cache.status()
    }
}

impl StorePieces {
    fn id(&self, key: &Key, version: Version, index: u64) -> PieceId {
        PieceId { store: self.store, key: key.clone(), version, index }
    }
}

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreId({:032x})", self.0)
    }
}
