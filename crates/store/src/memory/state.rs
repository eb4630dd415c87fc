//! The visible state of a store in memory.

use std::{collections::BTreeMap, ops::Bound, time::SystemTime};

use bytes::Bytes;
use futures::{StreamExt, stream};

use crate::{
    Attributes, ByteRange, Entry, GetResult, IntentId, Key, KeyCount, MAX_COUNTED_KEYS, Precondition, Prefix,
    PutResult, Scan, ScanPage, Scanned, StoreError, ValueMeta, Version,
};

/// The values, intents and counters of a store.
#[derive(Default)]
pub(super) struct State {
    pub(super) values: BTreeMap<Key, Stored>,
    /// The records of the intents.
    pub(super) intents: BTreeMap<IntentId, Bytes>,
    /// The number of commits.
    pub(super) commits: u64,
    /// The number of sets, from which versions are derived.
    sets: u64,
}

/// The bytes of a value with its attributes.
#[derive(Clone)]
pub(super) struct Value {
    pub(super) bytes: Bytes,
    pub(super) attributes: Attributes,
}

/// A visible value.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) meta: ValueMeta,
    bytes: Bytes,
}

/// A key or prefix directly below a prefix.
pub(super) enum Child {
    Key(Entry),
    Prefix(Prefix),
}

impl State {
    /// Checks a precondition. Returns true if the key has a value.
    pub(super) fn check_precondition(&self, key: &Key, precondition: &Precondition) -> Result<bool, StoreError> {
        let current = self.values.get(key).map(|stored| stored.meta.version);
        precondition.check(key, current)?;
        Ok(current.is_some())
    }

    /// Fails if any key is below the prefix.
    pub(super) fn check_empty(&self, prefix: &Prefix) -> Result<(), StoreError> {
        match self.below(prefix, first_below(prefix)).next() {
            Some((key, _)) => Err(StoreError::NotEmpty { prefix: prefix.clone(), key: key.clone() }),
            None => Ok(()),
        }
    }

    /// Counts the keys below the prefix, up to [`MAX_COUNTED_KEYS`].
    pub(super) fn count(&self, prefix: &Prefix) -> KeyCount {
        let mut found = self.below(prefix, first_below(prefix));
        let count = found.by_ref().take(MAX_COUNTED_KEYS).count() as u64;
        KeyCount { count, exact: found.next().is_none() }
    }

    pub(super) fn erase_prefix(&mut self, prefix: &Prefix) {
        let found = self.below(prefix, first_below(prefix));
        let keys: Vec<Key> = found.map(|(key, _)| key.clone()).collect();
        for key in &keys {
            self.values.remove(key);
        }
    }

    pub(super) fn set(&mut self, store: u64, key: Key, value: Value, modified: SystemTime) -> PutResult {
        let Value { bytes, attributes } = value;
        self.sets += 1;
        let version = Version::from_u128(u128::from(store) << 64 | u128::from(self.sets));
        let meta = ValueMeta { size: bytes.len() as u64, version, modified, attributes };
        let replaced = self.values.insert(key, Stored { meta, bytes }).is_some();
        PutResult { version, replaced }
    }

    /// A copy of what is below a prefix, which shares the values.
    pub(super) fn copy_below(&self, prefix: &Prefix) -> Self {
        let values = self.below(prefix, first_below(prefix));
        let values = values.map(|(key, stored)| (key.clone(), stored.clone())).collect();
        Self { values, ..Self::default() }
    }

    /// The keys below `prefix` in order, starting at a bound.
    pub(super) fn below<'s>(
        &'s self,
        prefix: &'s Prefix,
        from: Bound<&str>,
    ) -> impl Iterator<Item = (&'s Key, &'s Stored)> {
        self.values.range::<str, _>((from, Bound::Unbounded)).take_while(|(key, _)| prefix.contains(key))
    }

    /// A page of a scan.
    pub(super) fn scan(&self, scan: &Scan) -> ScanPage {
        let (mut page, mut from) = (ScanPage::default(), scan.start());
        loop {
            let next = self.values.range::<str, _>((Bound::Included(from.as_str()), Bound::Unbounded)).next();
            let Some((key, stored)) = next.filter(|(key, _)| scan.contains(key)) else { return page };
            if page.entries.len() == scan.limit() {
                page.more = true;
                return page;
            }
            match scan.folded(key.as_str()) {
                Some(prefix) => {
                    from = prefix.upper_bound().unwrap_or_default();
                    page.entries.push(Scanned::Prefix(prefix));
                }
                None => {
                    from = format!("{key}\0");
                    page.entries.push(Scanned::Key(Entry::new(key.clone(), stored.meta.clone())));
                }
            }
        }
    }

    /// The first child of `prefix` after `last`, which may have been erased in the meantime.
    pub(super) fn next_child(&self, prefix: &Prefix, last: Option<&str>) -> Option<Child> {
        let past_last = last.and_then(|last| Prefix::parse(last).ok()).and_then(|last| last.upper_bound());
        let from = match (&past_last, last) {
            (Some(past), _) => Bound::Included(past.as_str()),
            (None, Some(key)) => Bound::Excluded(key),
            (None, None) => first_below(prefix),
        };
        let (key, stored) = self.below(prefix, from).next()?;
        let deeper = prefix.strip(key).and_then(|rest| rest.split_once('/'));
        let Some((name, _)) = deeper else {
            return Some(Child::Key(Entry::new(key.clone(), stored.meta.clone())));
        };
        Prefix::parse(&format!("{prefix}{name}/")).ok().map(Child::Prefix)
    }
}

/// The first text that a key below a prefix can have. Hidden keys, which are not below the root, precede all others.
pub(super) fn first_below(prefix: &Prefix) -> Bound<&str> {
    Bound::Included(if prefix.is_root() { " " } else { prefix.as_str() })
}

impl Stored {
    pub(super) fn read(self, range: Option<ByteRange>) -> Result<GetResult, StoreError> {
        let Self { meta, bytes } = self;
        let range = match range {
            Some(range) => {
                range.resolve(meta.size).ok_or_else(|| StoreError::RangeNotSatisfiable { meta: meta.clone() })?
            }
            None => 0..meta.size,
        };
        // The value is in memory, so the ends of the range fit into `usize`.
        let bytes = bytes.slice(range.start as usize..range.end as usize);
        let chunk = (!bytes.is_empty()).then_some(Ok(bytes));
        Ok(GetResult { meta, range, stream: stream::iter(chunk).boxed() })
    }
}
