//! Versions of data that other programs own.

use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

use crate::{CursorSigner, Key, Version};

/// The seed that distinguishes the secret of cursors from the key of versions.
const CURSORS: u64 = 1;

/// Makes the versions of a store whose values other programs set, from what identifies a value there: the attributes of
/// a file, or the entity tag of an object.
///
/// The hash is keyed with the name of the store, such as its URL: servers of one store that are given the same name make
/// equal versions, and continue the listings of each other.
#[derive(Clone, Copy, Debug)]
pub struct VersionHash {
    versions: u64,
    cursors: u64,
}

impl VersionHash {
    /// The hash of a store of this name.
    pub fn new(name: &str) -> Self {
        Self { versions: xxh3_64(name.as_bytes()), cursors: xxh3_64_with_seed(name.as_bytes(), CURSORS) }
    }

    /// The version of a value of `key`. The order of the parts counts, and where each ends.
    pub fn version(&self, key: &Key, parts: &[&[u8]]) -> Version {
        let mut hash = Xxh3::with_seed(self.versions);
        for part in [key.as_bytes()].iter().chain(parts) {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Version::from_u128(hash.digest128())
    }

    /// The signer of the store's cursors.
    pub fn cursors(&self) -> CursorSigner {
        CursorSigner::new(self.cursors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_depend_on_the_name_the_key_and_each_part() {
        let version = |name, key, parts: &[&[u8]]| VersionHash::new(name).version(&Key::parse(key).unwrap(), parts);
        let first = version("s3://a", "k", &[b"12", b"3"]);
        assert_eq!(version("s3://a", "k", &[b"12", b"3"]), first);
        for other in [
            version("s3://b", "k", &[b"12", b"3"]),
            version("s3://a", "l", &[b"12", b"3"]),
            version("s3://a", "k", &[b"1", b"23"]),
            version("s3://a", "k", &[b"3", b"12"]),
            version("s3://a", "k", &[b"123"]),
            version("s3://a", "k", &[b"12", b"3", b""]),
        ] {
            assert_ne!(other, first);
        }
    }
}
