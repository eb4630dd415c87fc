//! Physical keys: the locations of entries in the index.
//!
//! ```text
//! \0index             the metadata of the index, see Meta
//! \0sweep<number>     an erased prefix whose entries are not yet removed
//! \1<number><key>     a key that was set below such a prefix afterwards, in the sweep's own space
//! \2<id>              an intent, as a record with its bytes
//! \3<text>            a hidden key, of an upload that is under way
//! <key>               every other key
//! ```
//!
//! Erasing a prefix writes one record, whatever is below it. During its **sweep**, all plain keys below the prefix are
//! dead, and keys that are set there live in the sweep's own space. Lookups and listings therefore never check single
//! entries, and skip a million dead ones with one seek. A sweep first deletes the dead entries (phase
//! [`Deleting`](Phase::Deleting)) and then moves its own space back to the plain keys ([`Moving`](Phase::Moving)).
//! Sweeps run one at a time, the oldest first. A key belongs to the newest sweep whose prefix contains it.

use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use xxhash_rust::xxh3::xxh3_64;
use zarrd_store::{IntentId, Prefix};

use crate::{
    index::{Index, IndexError},
    record::with_checksum,
};

/// The key of the index's metadata entry.
pub(crate) const META_KEY: &[u8] = b"\0index";
/// The key of that entry in stores of format 1.
pub(crate) const FORMAT_1_META_KEY: &[u8] = b"\0meta";
pub(crate) const SWEEP: &[u8] = b"\0sweep";
const SWEEP_SPACE: u8 = 1;
/// The first byte of an intent's key. No store key begins with it, so intents are neither listed nor swept.
pub(crate) const INTENTS: &[u8] = &[2];
/// The least first byte of a store key that is not hidden: none begins with a control character.
pub(crate) const FIRST_KEY: &[u8] = FIRST_VISIBLE.as_bytes();
pub(crate) const FIRST_VISIBLE: &str = " ";
/// The first character of hidden keys (see [`zarrd_store::Key`]).
pub(crate) const FIRST_HIDDEN: &str = "\u{3}";

/// The metadata entry of an index: number, size and digest of its entries. Every batch updates it by what the batch
/// replaces, so that entries lost, retained or restored by a crash are detected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    /// The last commit group that is applied completely.
    pub(crate) applied: u64,
    /// The number of entries, excluding internal ones.
    pub(crate) entries: u64,
    /// The size of their keys and values, in bytes.
    pub(crate) bytes: u64,
    /// The exclusive or of the [`fingerprint`]s of all entries.
    pub(crate) digest: u64,
}

/// An erased prefix whose entries are not yet removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sweep {
    /// The number of the erase.
    pub(crate) number: u64,
    pub(crate) prefix: Prefix,
    pub(crate) phase: Phase,
}

/// The phase of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The dead entries at the plain keys are being deleted.
    Deleting,
    /// No dead entry is left; the sweep's own space is being moved to the plain keys.
    Moving,
}

/// All active sweeps, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sweeps(pub(crate) Vec<Sweep>);

/// The contribution of an entry to [`Meta::digest`].
pub(crate) fn fingerprint(key: &[u8], value: &[u8]) -> u64 {
    xxh3_64(key) ^ xxh3_64(value).rotate_left(32)
}

/// True if a physical key is internal to the index, and so not counted in [`Meta`].
pub(crate) fn is_internal(physical: &[u8]) -> bool {
    physical.first() == Some(&0)
}

/// The first physical key that can follow `last`, or the first of all.
pub(crate) fn first_after(last: Option<&Bytes>) -> Vec<u8> {
    last.map_or_else(Vec::new, |last| [last, b"\0".as_slice()].concat())
}

/// The store key of a physical key.
pub(crate) fn logical_key(physical: &[u8]) -> &[u8] {
    match physical.split_first() {
        Some((&SWEEP_SPACE, rest)) => rest.get(8..).unwrap_or_default(),
        _ => physical,
    }
}

/// The physical key of an intent.
pub(crate) fn intent_key(id: IntentId) -> Bytes {
    [INTENTS, &id.as_u128().to_be_bytes()].concat().into()
}

/// The intent of a physical key.
pub(crate) fn intent_of(physical: &[u8]) -> Option<IntentId> {
    let id = physical.strip_prefix(INTENTS)?;
    Some(IntentId::from_u128(u128::from_be_bytes(id.try_into().ok()?)))
}

/// The key prefix of a sweep's own space.
pub(crate) fn sweep_space(number: u64) -> Bytes {
    let mut bytes = BytesMut::with_capacity(9);
    bytes.put_u8(SWEEP_SPACE);
    bytes.put_u64(number);
    bytes.freeze()
}

/// The physical key of a store key in a sweep's own space.
pub(crate) fn sweep_space_key(number: u64, key: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(9_usize.saturating_add(key.len()));
    bytes.put_u8(SWEEP_SPACE);
    bytes.put_u64(number);
    bytes.put_slice(key);
    bytes.freeze()
}

impl Sweeps {
    /// Reads all sweeps of an index.
    pub(crate) fn read(index: &dyn Index) -> Result<Self, IndexError> {
        let mut sweeps = Vec::new();
        for entry in index.iter(SWEEP)? {
            let (key, value) = entry?;
            let Some(mut number) = key.strip_prefix(SWEEP) else { break };
            let number = number.try_get_u64().map_err(|_| IndexError::Meta)?;
            sweeps.push(Sweep::decode(number, &value).ok_or(IndexError::Meta)?);
        }
        Ok(Self(sweeps))
    }

    /// Adds the sweep of an entry, unless that is damaged. Entries of other keys are ignored.
    pub(crate) fn add_entry(&mut self, physical: &[u8], value: &[u8]) {
        let number = physical.strip_prefix(SWEEP).and_then(|number| Some(u64::from_be_bytes(*number.first_chunk()?)));
        let Some(sweep) = number.and_then(|number| Sweep::decode(number, value)) else { return };
        self.0.retain(|other| other.number != sweep.number);
        self.0.push(sweep);
        self.0.sort_by_key(|sweep| sweep.number);
    }

    /// True if a physical key, of an entry that exists, is the one that its store key is looked up at. While a sweep
    /// moves its keys, both of the places are.
    pub(crate) fn is_live(&self, physical: &[u8]) -> bool {
        let covering = self.covering(logical_key(physical));
        let space = match physical.split_first() {
            Some((&SWEEP_SPACE, rest)) => rest.first_chunk().map(|number| u64::from_be_bytes(*number)),
            _ => None,
        };
        match (covering, space) {
            (None, None) => true,
            (Some(sweep), None) => sweep.phase == Phase::Moving,
            (Some(sweep), Some(number)) => sweep.number == number,
            (None, Some(_)) => false,
        }
    }

    /// The newest sweep whose prefix contains the key.
    pub(crate) fn covering(&self, key: &[u8]) -> Option<&Sweep> {
        let is_hidden = key.starts_with(FIRST_HIDDEN.as_bytes());
        let contains = |prefix: &Prefix| key.starts_with(prefix.as_bytes()) && !(prefix.is_root() && is_hidden);
        self.0.iter().rev().find(|sweep| contains(&sweep.prefix))
    }

    /// Looks up a store key.
    pub(crate) fn get(&self, index: &dyn Index, key: &[u8]) -> Result<Option<Bytes>, IndexError> {
        match self.covering(key) {
            None => index.get(key),
            Some(sweep) => match (index.get(&sweep_space_key(sweep.number, key))?, sweep.phase) {
                (None, Phase::Moving) => index.get(key),
                (found, _) => Ok(found),
            },
        }
    }

    /// The physical key at which a store key is written.
    pub(crate) fn physical_key(&self, key: &[u8]) -> Bytes {
        match self.covering(key) {
            Some(Sweep { number, phase: Phase::Deleting, .. }) => sweep_space_key(*number, key),
            _ => Bytes::copy_from_slice(key),
        }
    }

    /// The physical key that a write of a store key removes in addition: its entry in the space of a sweep that is
    /// moving it.
    pub(crate) fn old_physical_key(&self, key: &[u8]) -> Option<Bytes> {
        match self.covering(key) {
            Some(Sweep { number, phase: Phase::Moving, .. }) => Some(sweep_space_key(*number, key)),
            _ => None,
        }
    }

    /// Adds a sweep, unless it exists.
    pub(crate) fn with_sweep(&self, number: u64, prefix: &Prefix) -> Arc<Self> {
        let mut sweeps = self.0.clone();
        if !sweeps.iter().any(|sweep| sweep.number == number) {
            sweeps.push(Sweep { number, prefix: prefix.clone(), phase: Phase::Deleting });
            sweeps.sort_by_key(|sweep| sweep.number);
        }
        Arc::new(Self(sweeps))
    }
}

impl Sweep {
    /// The physical key of the sweep's entry.
    pub(crate) fn key(&self) -> Bytes {
        let mut bytes = BytesMut::from(SWEEP);
        bytes.put_u64(self.number);
        bytes.freeze()
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::new();
        bytes.put_u8(match self.phase {
            Phase::Deleting => 0,
            Phase::Moving => 1,
        });
        bytes.put_slice(self.prefix.as_bytes());
        with_checksum(bytes)
    }

    fn decode(number: u64, bytes: &[u8]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<8>()?;
        if u64::from_be_bytes(*sum) != xxh3_64(body) {
            return None;
        }
        let (phase, prefix) = body.split_first()?;
        let phase = match phase {
            0 => Phase::Deleting,
            1 => Phase::Moving,
            _ => return None,
        };
        Some(Self { number, prefix: Prefix::from_stored(prefix).ok()?, phase })
    }
}

impl Meta {
    const LEN: usize = 40;

    /// Reads the metadata entry of an index. One of format 1 has less; [`recount`](Self::recount) computes the rest.
    pub(crate) fn read(index: &dyn Index) -> Result<Option<Self>, IndexError> {
        index.get(META_KEY)?.map(|bytes| Self::decode(&bytes).ok_or(IndexError::Meta)).transpose()
    }

    /// Computes the metadata from all entries.
    pub(crate) fn recount(index: &dyn Index) -> Result<Self, IndexError> {
        let mut meta = Self::default();
        for entry in index.iter(b"")? {
            let (key, value) = entry?;
            if !is_internal(&key) {
                meta.add(&key, &value);
            }
        }
        Ok(meta)
    }

    /// Counts a changed entry, given its old and new value, if any.
    pub(crate) fn replace(&mut self, key: &[u8], old: Option<&Bytes>, new: Option<&Bytes>) {
        if let Some(old) = old {
            self.remove(key, old);
        }
        if let Some(new) = new {
            self.add(key, new);
        }
    }

    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.entries = self.entries.saturating_add(1);
        self.bytes = self.bytes.saturating_add(entry_bytes(key, value));
        self.digest ^= fingerprint(key, value);
    }

    fn remove(&mut self, key: &[u8], value: &[u8]) {
        self.entries = self.entries.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(entry_bytes(key, value));
        self.digest ^= fingerprint(key, value);
    }

    /// True if the entries are the same, whatever part of the log has been applied.
    pub(crate) fn same_entries(&self, other: &Self) -> bool {
        (self.entries, self.digest) == (other.entries, other.digest)
    }

    pub(crate) fn encode(self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(Self::LEN);
        for field in [self.applied, self.entries, self.bytes, self.digest] {
            bytes.put_u64(field);
        }
        with_checksum(bytes)
    }

    /// Decodes the entry; `None` if it is damaged.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (mut body, sum) = bytes.split_last_chunk::<8>()?;
        if bytes.len() != Self::LEN || u64::from_be_bytes(*sum) != xxh3_64(body) {
            return None;
        }
        Some(Self { applied: body.get_u64(), entries: body.get_u64(), bytes: body.get_u64(), digest: body.get_u64() })
    }
}

fn entry_bytes(key: &[u8], value: &[u8]) -> u64 {
    (key.len() as u64).saturating_add(value.len() as u64)
}
