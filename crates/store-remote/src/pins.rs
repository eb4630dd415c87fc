//! Versions of validators, and what pins them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quick_cache::sync::Cache;
use zarrd_store::{CursorSigner, Key, Version, VersionHash};

/// The number of versions whose pins are cached.
const REMEMBERED: usize = 64 << 10;

/// Makes versions of validators, and caches what pins the last 65,536 of them in conditional requests.
#[derive(Debug)]
pub struct Pins<P> {
    hash: VersionHash,
    pins: Cache<Version, P>,
}

impl<P: Clone> Pins<P> {
    /// The versions of a store of this name.
    pub fn new(name: &str) -> Self {
        Self { hash: VersionHash::new(name), pins: Cache::new(REMEMBERED) }
    }

    /// The signer of the store's cursors.
    pub fn cursors(&self) -> CursorSigner {
        self.hash.cursors()
    }

    /// The version of a value of `key` with this validator, and this kind of it, and this size.
    pub fn version(&self, key: &Key, kind: &str, validator: &str, size: u64) -> Version {
        self.hash.version(key, &[kind.as_bytes(), validator.as_bytes(), &size.to_le_bytes()])
    }

    /// Remembers what pins a version.
    pub fn insert(&self, version: Version, pin: P) {
        self.pins.insert(version, pin);
    }

    /// The condition that pins a version, if it is cached.
    pub fn pin(&self, version: Version) -> Option<P> {
        self.pins.get(&version)
    }
}

/// True if equal entity tags of this form mean equal bytes.
pub fn is_strong(etag: &str) -> bool {
    !etag.starts_with("W/") && !etag.trim_matches('"').is_empty()
}

/// The time in whole seconds, which is what headers have.
pub fn seconds(time: SystemTime) -> SystemTime {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap_or(UNIX_EPOCH)
}
