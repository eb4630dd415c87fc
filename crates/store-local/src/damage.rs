//! The known damage of an index that was [rebuilt](crate::open) from what was whole of another one.
//!
//! > A page with thirty records is lost. A listing still has their keys where these are known, each with a *placeholder*, and
//! > `lab/t/c/damaged-keys-5f0c…` for the others: a read of any key that the page may have had fails, and is not a 404.
//!
//! ```text
//! <key>               a placeholder in place of a record: 0xFF, the cause as text
//! \0lost<key>         keys whose names are lost, with the key of their placeholder: length of the first u32, the first,
//!                     the end if there is one, checksum
//! \0gone<name>        a key among them, or a prefix, that was erased since
//! ```
//!
//! A key without a record that may be among lost ones is damaged until it is set or erased. Erasing the placeholder of the
//! lost keys ends that for all of them.

use bytes::{BufMut, Bytes, BytesMut};
use xxhash_rust::xxh3::xxh3_64;
use zarrd_store::{Corruption, Key, Prefix};

use crate::{
    ValueCorruption,
    index::{Index, IndexError},
    record::with_checksum,
};

/// The first bytes of the entries of lost keys.
pub(crate) const LOST: &[u8] = b"\0lost";
/// The first bytes of the entries of erased names.
pub(crate) const GONE: &[u8] = b"\0gone";
/// The value of such an entry.
pub(crate) const GONE_VALUE: Bytes = Bytes::from_static(b"1");
/// The number of ranges of lost keys that an index has at most.
pub(crate) const MAX_LOST_RANGES: usize = 4096;
/// The first byte of a placeholder; records begin with the number of their format.
const PLACEHOLDER: u8 = 0xFF;

/// Keys whose names are lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LostKeys {
    /// The key of their placeholder.
    pub(crate) placeholder: Key,
    /// The first text that one of them can have.
    pub(crate) from: Bytes,
    /// The text that is above all of them; `None` if there is none.
    pub(crate) to: Option<Bytes>,
}

/// All lost keys of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownDamage(pub(crate) Vec<LostKeys>);

/// A placeholder with its cause.
pub(crate) fn placeholder(cause: &str) -> Bytes {
    [&[PLACEHOLDER], cause.as_bytes()].concat().into()
}

/// True if an entry is a placeholder.
pub(crate) fn is_placeholder(entry: &[u8]) -> bool {
    entry.first() == Some(&PLACEHOLDER)
}

/// The damage of an entry that is no record.
pub(crate) fn damage_of(entry: &[u8]) -> ValueCorruption {
    match entry.split_first() {
        Some((&PLACEHOLDER, cause)) => ValueCorruption::Lost { cause: String::from_utf8_lossy(cause).into_owned() },
        _ => ValueCorruption::Record,
    }
}

/// The key of the entry of an erased name.
pub(crate) fn gone_key(name: &[u8]) -> Bytes {
    [GONE, name].concat().into()
}

impl LostKeys {
    /// The key of the entry.
    pub(crate) fn key(&self) -> Bytes {
        [LOST, self.placeholder.as_bytes()].concat().into()
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::new();
        // Keys are bounded, by 1 KiB.
        bytes.put_u32(u32::try_from(self.from.len()).unwrap_or(u32::MAX));
        bytes.put_slice(&self.from);
        bytes.put_slice(self.to.as_deref().unwrap_or_default());
        with_checksum(bytes)
    }

    pub(crate) fn decode(key: &[u8], value: &[u8]) -> Option<Self> {
        let (body, sum) = value.split_last_chunk::<8>()?;
        if u64::from_be_bytes(*sum) != xxh3_64(body) {
            return None;
        }
        let (len, texts) = body.split_first_chunk::<4>()?;
        let (from, to) = texts.split_at_checked(usize::try_from(u32::from_be_bytes(*len)).ok()?)?;
        Some(Self {
            placeholder: Key::from_stored(key.strip_prefix(LOST)?).ok()?,
            from: Bytes::copy_from_slice(from),
            to: (!to.is_empty()).then(|| Bytes::copy_from_slice(to)),
        })
    }

    fn contains(&self, key: &[u8]) -> bool {
        &*self.from <= key && self.to.as_ref().is_none_or(|to| key < &**to)
    }

    /// True if one of the keys can be below a prefix.
    fn intersects(&self, prefix: &Prefix) -> bool {
        let starts_before_end = prefix.upper_bound().is_none_or(|end| &*self.from < end.as_bytes());
        starts_before_end && self.to.as_ref().is_none_or(|to| prefix.as_bytes() < &**to)
    }
}

impl KnownDamage {
    /// Reads the lost keys of an index.
    pub(crate) fn read(index: &dyn Index) -> Result<Self, IndexError> {
        let mut lost = Vec::new();
        for entry in index.iter(LOST)? {
            let (key, value) = entry?;
            if !key.starts_with(LOST) {
                break;
            }
            lost.push(LostKeys::decode(&key, &value).ok_or(IndexError::Meta)?);
        }
        Ok(Self(lost))
    }

    /// The lost keys among which a key may be.
    pub(crate) fn of_key<'d>(&'d self, key: &'d Key) -> impl Iterator<Item = &'d LostKeys> {
        self.0.iter().filter(|lost| !key.is_hidden() && lost.contains(key.as_bytes()))
    }

    /// The lost keys of which some may be below a prefix.
    pub(crate) fn below<'d>(&'d self, prefix: &'d Prefix) -> impl Iterator<Item = &'d LostKeys> {
        self.0.iter().filter(|lost| lost.intersects(prefix))
    }
}

/// The damage of a key that may be among lost ones.
pub(crate) fn lost_name(lost: &LostKeys) -> Corruption {
    Corruption::new(ValueCorruption::LostName { placeholder: lost.placeholder.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(from: &str, to: Option<&str>) -> LostKeys {
        let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        LostKeys { placeholder: Key::parse("a/damaged").unwrap(), from: bytes(from), to: to.map(bytes) }
    }

    #[test]
    fn lost_keys_round_trip_and_detect_damage() {
        for keys in [lost("a/b\0", Some("a/c")), lost(" ", None)] {
            let value = keys.encode();
            assert_eq!(LostKeys::decode(&keys.key(), &value), Some(keys.clone()));
            for at in 0..value.len() {
                let mut damaged = value.to_vec();
                damaged[at] ^= 4;
                assert_eq!(LostKeys::decode(&keys.key(), &damaged), None);
            }
        }
    }

    #[test]
    fn lost_keys_are_below_the_prefixes_that_they_can_have() {
        let keys = lost("a/c/3", Some("a/c/5"));
        for (prefix, expected) in
            [("", true), ("a/", true), ("a/c/", true), ("a/c/4/", true), ("a/d/", false), ("a/b/", false)]
        {
            assert_eq!(keys.intersects(&Prefix::parse(prefix).unwrap()), expected, "{prefix:?}");
        }
        assert!(lost("a/c/3", None).intersects(&Prefix::parse("z/").unwrap()));
        let contains = |key: &str| keys.contains(key.as_bytes());
        assert!(contains("a/c/3") && contains("a/c/4/9") && !contains("a/c/5") && !contains("a/c/2"));
    }

    #[test]
    fn placeholders_have_their_cause() {
        let entry = placeholder("index: the page at byte 4096");
        assert!(is_placeholder(&entry));
        assert!(matches!(damage_of(&entry), ValueCorruption::Lost { cause } if cause.contains("4096")));
        assert!(matches!(damage_of(b"noise"), ValueCorruption::Record));
    }
}
