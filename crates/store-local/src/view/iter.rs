//! The entries of a view in the order of their keys, merged from the memtables and the index.

use std::sync::Arc;

use bytes::Bytes;
use zarrd_store::{Corruption, Key, Prefix, StoreError};

use super::{View, store_error};
use crate::{
    index::{Index, IndexError, IndexIter},
    keyspace::{FIRST_VISIBLE, Phase, Sweeps, sweep_space},
    record::Record,
};

/// A key with its record, or with the damage of the record.
pub(crate) type ViewEntry = (Key, Result<Record, Corruption>);

/// The keys of a view below a prefix, with their records.
pub(crate) struct Entries<'v> {
    view: &'v View,
    prefix: Prefix,
    /// All keys before this one have been passed.
    from: String,
    cursors: Vec<KeyspaceCursor<'v>>,
}

/// A cursor over the plain keys of the index, or over the space of a sweep.
struct KeyspaceCursor<'v> {
    /// The view whose memtables may have erased entries of the index.
    view: Option<&'v View>,
    index: &'v dyn Index,
    sweeps: &'v Sweeps,
    /// The number of the sweep; `None` for the plain keys.
    sweep: Option<u64>,
    /// The common prefix of its physical keys.
    key_prefix: Bytes,
    iter: Option<IndexIter<'v>>,
    head: Option<(Arc<str>, Bytes)>,
}

impl<'v> Entries<'v> {
    pub(super) fn new(view: &'v View, prefix: &Prefix, from: &str) -> Result<Self, StoreError> {
        let parts = &*view.parts;
        let cursors = cursors(Some(view), &*parts.index, &parts.sweeps, prefix);
        // The root does not contain hidden keys, which precede all others. Who wants them begins with one.
        let from = if from.is_empty() { FIRST_VISIBLE } else { from };
        let mut entries = Self { view, prefix: prefix.clone(), from: from.to_owned(), cursors };
        entries.seek(from)?;
        Ok(entries)
    }

    /// Skips all keys before `to`.
    pub(crate) fn seek(&mut self, to: &str) -> Result<(), StoreError> {
        to.clone_into(&mut self.from);
        for cursor in &mut self.cursors {
            cursor.seek(to, &self.prefix).map_err(store_error)?;
        }
        Ok(())
    }

    /// The least key that the next entry can have.
    pub(crate) fn position(&self) -> &str {
        &self.from
    }

    /// The next entry, with its record or the damage of that.
    pub(crate) fn next_entry(&mut self) -> Result<Option<ViewEntry>, StoreError> {
        loop {
            let Some(name) = self.next_key() else { return Ok(None) };
            let mut record = None;
            for cursor in &mut self.cursors {
                if cursor.head.as_ref().is_some_and(|(key, _)| *key == name) {
                    // A key that is being moved may be in both spaces; the plain one is newer.
                    record = cursor.head.take().map(|(_, record)| record);
                    cursor.advance(&self.prefix).map_err(store_error)?;
                }
            }
            self.from = format!("{name}\0");
            // Memtables and index contain only valid keys.
            let Ok(key) = Key::from_stored(name.as_bytes()) else { continue };
            let record = match (self.view.latest(&name), record) {
                (Some(latest), _) => self.view.decode_latest(&key, latest),
                (None, Some(bytes)) => self.view.decode(&key, bytes).map(Some),
                (None, None) => Ok(None),
            };
            match record {
                Ok(Some(record)) => return Ok(Some((key, Ok(record)))),
                Ok(None) => {}
                Err(StoreError::Corrupt { cause, .. }) => return Ok(Some((key, Err(cause)))),
                Err(error) => return Err(error),
            }
        }
    }

    /// The next key in any source, visible or not.
    fn next_key(&self) -> Option<Arc<str>> {
        let parts = &*self.view.parts;
        let tables = [Some(&parts.active), parts.frozen.as_ref()];
        let changed = tables.into_iter().flatten().filter_map(|table| table.next_key(&self.from));
        let changed = changed.filter(|key| key.starts_with(self.prefix.as_str()));
        let indexed = self.cursors.iter().filter_map(|cursor| cursor.head.as_ref().map(|(key, _)| Arc::clone(key)));
        changed.chain(indexed).min()
    }
}

/// The live entries of an index below a prefix, at most one more than `limit`.
pub(crate) fn live_below(
    index: &dyn Index,
    sweeps: &Sweeps,
    prefix: &Prefix,
    limit: usize,
) -> Result<Vec<(Bytes, Bytes)>, IndexError> {
    let mut found = Vec::new();
    for mut cursor in cursors(None, index, sweeps, prefix) {
        cursor.seek(prefix.as_str(), prefix)?;
        while let Some((key, record)) = cursor.head.take() {
            if found.len() > limit {
                return Ok(found);
            }
            found.push(([&*cursor.key_prefix, key.as_bytes()].concat().into(), record));
            cursor.advance(prefix)?;
        }
    }
    Ok(found)
}

/// Cursors over all spaces that can contain keys below a prefix.
fn cursors<'v>(
    view: Option<&'v View>,
    index: &'v dyn Index,
    sweeps: &'v Sweeps,
    prefix: &Prefix,
) -> Vec<KeyspaceCursor<'v>> {
    let cursor = |sweep: Option<u64>| KeyspaceCursor {
        view,
        index,
        sweeps,
        sweep,
        key_prefix: sweep.map_or_else(Bytes::new, sweep_space),
        iter: None,
        head: None,
    };
    let concerned = sweeps.0.iter().filter(|sweep| {
        let (sweep, prefix) = (sweep.prefix.as_str(), prefix.as_str());
        sweep.starts_with(prefix) || prefix.starts_with(sweep)
    });
    concerned.map(|sweep| cursor(Some(sweep.number))).chain([cursor(None)]).collect()
}

impl KeyspaceCursor<'_> {
    fn seek(&mut self, to: &str, prefix: &Prefix) -> Result<(), IndexError> {
        if self.iter.is_some() && self.head.as_ref().is_none_or(|(key, _)| &**key >= to) {
            return Ok(());
        }
        self.reposition(to)?;
        self.advance(prefix)
    }

    fn reposition(&mut self, to: &str) -> Result<(), IndexError> {
        let mut from = self.key_prefix.to_vec();
        // Internal entries precede all keys.
        from.extend_from_slice(if to.is_empty() && self.sweep.is_none() {
            crate::keyspace::FIRST_KEY
        } else {
            to.as_bytes()
        });
        self.iter = Some(self.index.iter(&from)?);
        self.head = None;
        Ok(())
    }

    /// Advances to the next entry that the index considers live.
    fn advance(&mut self, prefix: &Prefix) -> Result<(), IndexError> {
        self.head = None;
        loop {
            let Some(entry) = self.iter.as_mut().and_then(Iterator::next) else { return Ok(()) };
            let (physical, record) = entry?;
            let key = physical.strip_prefix(&*self.key_prefix).and_then(|key| std::str::from_utf8(key).ok());
            let Some(key) = key.filter(|key| key.starts_with(prefix.as_str())) else { return Ok(()) };
            match self.erased_prefix(key).map(|erased_prefix| erased_prefix.upper_bound()) {
                None => {
                    self.head = Some((key.into(), record));
                    return Ok(());
                }
                Some(Some(end)) => self.reposition(&end)?,
                // No live entry is left.
                Some(None) => return Ok(()),
            }
        }
    }

    /// The prefix of dead entries that contains a key of this space.
    fn erased_prefix(&self, key: &str) -> Option<Prefix> {
        let erased = self.view.and_then(|View { parts, at, .. }| {
            let mut tables = [Some(&parts.active), parts.frozen.as_ref()].into_iter().flatten();
            tables.find_map(|table| table.erased_above(key, *at))
        });
        erased.or_else(|| {
            let sweep = self.sweeps.covering(key.as_bytes())?;
            let alive = match self.sweep {
                Some(number) => sweep.number == number,
                None => sweep.phase == Phase::Moving,
            };
            (!alive).then(|| sweep.prefix.clone())
        })
    }
}
