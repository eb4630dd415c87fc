//! Snapshots of everything below a prefix.
//!
//! The records are iterated as of one commit and written to a file; the value files to which they refer are pinned. The
//! index may have later changes as soon as a memtable was frozen after that commit, so the pass holds off freezing, for
//! a minute at most ([`Views::hold_freezing`]), and begins anew if a memtable was frozen all the same.

use std::{
    fmt,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bytes::Bytes;
use zarrd_store::{
    ByteRange, Cursor, DirPage, Entry, GetResult, Intent, Key, KeyPage, ListableStore, ListedValue, ListingKind,
    MAX_LISTED_VALUE_BYTES, PageRequest, Prefix, PrefixSnapshot, ReadableStore, StoreError, ValueMeta, ValuePage,
    Watermark,
};

use super::{
    inner::{Scratch, StoreInner},
    read::open_value,
    record_file::{RecordFile, RecordWriter},
};
use crate::{
    blocking::run_blocking,
    damage::{damage_of, placeholder},
    error::is_missing_file,
    gc::{Pin, PinKind},
    record::{FileId, Record},
    view::{Memtable, View},
};

/// The time for which the gate is held without a break, so that sweeps and compaction go on.
const SLICE: Duration = Duration::from_millis(10);
/// The break between two slices, in which others get the gate, who only try to.
const BREAK: Duration = Duration::from_millis(1);
/// The number of entries after which the clock is read.
const ENTRIES_PER_CLOCK: usize = 256;
/// The number of times that a pass is begun.
const ATTEMPTS: usize = 3;
/// The bytes of records after which the space on the disk is checked.
const BYTES_PER_SPACE_CHECK: u64 = 4 << 20;

/// A [`PrefixSnapshot`] of a [`LocalStore`](crate::LocalStore).
pub(crate) struct LocalPrefixSnapshot(Arc<Inner>);

struct Inner {
    store: Arc<StoreInner>,
    prefix: Prefix,
    /// The number of the last change that it has.
    at: u64,
    intents: Vec<Intent>,
    records: RecordFile,
    pin: Arc<Pin>,
}

/// One pass over the records.
struct Pass<'p> {
    store: &'p StoreInner,
    prefix: &'p Prefix,
    records: RecordWriter,
    scratch: Scratch,
    files: Vec<FileId>,
    /// The bytes of records at which the space is checked again.
    next_space_check: u64,
}

/// The result of a slice of a pass.
enum Slice {
    /// The key at which the next slice begins.
    Next(String),
    Done,
    /// A memtable was frozen.
    Overtaken,
}

impl LocalPrefixSnapshot {
    /// Takes a snapshot. Blocks.
    pub(crate) fn new(store: &Arc<StoreInner>, prefix: &Prefix) -> Result<Self, StoreError> {
        let pin = store.pin(PinKind::Snapshot);
        for _ in 0..ATTEMPTS {
            let _hold = store.views.hold_freezing();
            let (view, gate) = store.views.stable()?;
            let (at, active) = (view.at, Arc::clone(&view.parts.active));
            let intents = view.intents()?;
            drop((view, gate));
            let mut pass = Pass::new(store, prefix)?;
            if !pass.run(at, &active)? {
                continue;
            }
            let failed = |error| StoreError::io("write the records of a snapshot", error);
            let records = pass.records.finish().map_err(failed)?;
            pin.resolve(pass.files);
            if !pin.is_valid() {
                return Err(StoreError::SnapshotExpired);
            }
            return Ok(Self(Arc::new(Inner {
                store: Arc::clone(store),
                prefix: prefix.clone(),
                at,
                intents,
                records,
                pin: Arc::new(pin),
            })));
        }
        Err(StoreError::Busy { retry_after: Some(Duration::from_secs(10)) })
    }
}

impl<'p> Pass<'p> {
    fn new(store: &'p StoreInner, prefix: &'p Prefix) -> Result<Self, StoreError> {
        let created = store.unnamed_file(BYTES_PER_SPACE_CHECK);
        let (file, scratch) = created.map_err(|error| StoreError::io("create the records of a snapshot", error))?;
        Ok(Self { store, prefix, records: RecordWriter::new(file), scratch, files: Vec::new(), next_space_check: 0 })
    }

    /// Writes the records as of a number. Returns false if a memtable was frozen meanwhile.
    fn run(&mut self, at: u64, active: &Arc<Memtable>) -> Result<bool, StoreError> {
        let mut from = self.prefix.as_str().to_owned();
        loop {
            if self.records.len() >= self.next_space_check {
                self.next_space_check = self.records.len().saturating_add(BYTES_PER_SPACE_CHECK);
                self.store.check_scratch_space(self.scratch, BYTES_PER_SPACE_CHECK)?;
            }
            match self.slice(&from, at, active)? {
                Slice::Next(key) => {
                    thread::sleep(BREAK);
                    self.store.fault.between_slices();
                    from = key;
                }
                Slice::Done => return Ok(true),
                Slice::Overtaken => return Ok(false),
            }
        }
    }

    fn slice(&mut self, from: &str, at: u64, active: &Arc<Memtable>) -> Result<Slice, StoreError> {
        let started = Instant::now();
        let (view, _gate) = self.store.views.stable()?;
        let is_current = || Ok::<_, StoreError>(Arc::ptr_eq(&self.store.views.parts()?.active, active));
        if !Arc::ptr_eq(&view.parts.active, active) {
            return Ok(Slice::Overtaken);
        }
        let view = View { at, ..view };
        view.check_names_below(self.prefix)?;
        let mut entries = view.entries(self.prefix, from)?;
        loop {
            for _ in 0..ENTRIES_PER_CLOCK {
                let Some((key, record)) = entries.next_entry()? else {
                    return Ok(if is_current()? { Slice::Done } else { Slice::Overtaken });
                };
                let encoded = match record {
                    Ok(record) => {
                        self.files.extend(record.file().map(|file| file.id));
                        record.encode(key.as_bytes(), self.store.store_id())
                    }
                    Err(cause) => placeholder(&cause.to_string()),
                };
                let written = self.records.push(key.as_str(), &encoded);
                written.map_err(|error| StoreError::io("write the records of a snapshot", error))?;
            }
            if started.elapsed() >= SLICE {
                let next = entries.position().to_owned();
                return Ok(if is_current()? { Slice::Next(next) } else { Slice::Overtaken });
            }
        }
    }
}

impl Inner {
    /// The record of a key. Blocks as reads of the index do: the file was written for this snapshot, and is mostly cached.
    fn record(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        match self.records.get(key)? {
            Some(record) => self.decode(key, record).map(Some),
            None => self.store.views.now()?.check_name(key).map(|()| None),
        }
    }

    fn decode(&self, key: &Key, record: Bytes) -> Result<Record, StoreError> {
        let decoded = Record::decode(key.as_bytes(), record.clone(), self.store.store_id());
        decoded.ok_or_else(|| StoreError::corrupt(key.clone(), damage_of(&record)))
    }

    /// A page of the keys of the snapshot below `prefix`, each as `entry` makes it of the name and the encoded record.
    fn keys_below<T>(
        &self,
        prefix: &Prefix,
        page: &PageRequest,
        entry: impl Fn(&str, Bytes) -> Result<T, StoreError>,
    ) -> Result<(Vec<T>, Option<Cursor>), StoreError> {
        let from = self.store.page_start(ListingKind::Keys, prefix, page)?;
        let mut entries = self.records.read_from(&from)?;
        let (mut keys, mut last) = (Vec::new(), String::new());
        while let Some((name, record)) = entries.next()?.filter(|(name, _)| name.starts_with(prefix.as_str())) {
            if keys.len() == page.limit() {
                return Ok((keys, Some(self.store.cursor(ListingKind::Keys, prefix, &last))));
            }
            keys.push(entry(&name, record)?);
            last = name;
        }
        Ok((keys, None))
    }

    /// The children of a prefix in the snapshot.
    fn list_dir(&self, prefix: &Prefix, page: &PageRequest) -> Result<DirPage, StoreError> {
        let from = self.store.page_start(ListingKind::Dir, prefix, page)?;
        let mut entries = self.records.read_from(&from)?;
        let mut found = DirPage { keys: Vec::new(), prefixes: Vec::new(), cursor: None };
        let mut last = String::new();
        while let Some((name, record)) = entries.next()?.filter(|(name, _)| name.starts_with(prefix.as_str())) {
            if found.keys.len().saturating_add(found.prefixes.len()) == page.limit() {
                found.cursor = Some(self.store.cursor(ListingKind::Dir, prefix, &last));
                return Ok(found);
            }
            let below = name.get(prefix.as_str().len()..).unwrap_or_default();
            match below.split_once('/') {
                None => {
                    found.keys.push(self.entry(&name, record)?);
                    last = name;
                }
                Some((child, _)) => {
                    last = format!("{prefix}{child}/");
                    let child = Prefix::parse(&last).map_err(|_| unreadable())?;
                    entries = self.records.read_from(&child.upper_bound().unwrap_or_default())?;
                    found.prefixes.push(child);
                }
            }
        }
        Ok(found)
    }

    fn entry(&self, name: &str, record: Bytes) -> Result<Entry, StoreError> {
        Ok(self.listed_value(name, record)?.entry)
    }

    fn listed_value(&self, name: &str, record: Bytes) -> Result<ListedValue, StoreError> {
        let key = Key::parse(name).map_err(|_| unreadable())?;
        let record = match self.decode(&key, record) {
            Err(StoreError::Corrupt { cause, .. }) => Err(cause),
            record => Ok(record?),
        };
        let value = record.as_ref().ok().and_then(Record::inline).cloned();
        let value = value.filter(|value| value.len() as u64 <= MAX_LISTED_VALUE_BYTES);
        Ok(ListedValue { entry: self.store.listed((key, record)), value })
    }
}

/// The error of a name that was a key when it was written.
fn unreadable() -> StoreError {
    StoreError::io("read the records of a snapshot", std::io::ErrorKind::InvalidData.into())
}

#[async_trait]
impl ReadableStore for LocalPrefixSnapshot {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        let Inner { store, pin, .. } = &*self.0;
        if !pin.touch() {
            return Err(StoreError::SnapshotExpired);
        }
        self.check_key(key)?;
        let Some(record) = self.0.record(key)? else { return Ok(None) };
        match open_value(store, key, &record, range, Some(pin)).await {
            // The pin may have ended just now, and the file was removed.
            Err(error) if is_missing_file(&error) && !pin.is_valid() => Err(StoreError::SnapshotExpired),
            result => result.map(Some),
        }
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        self.check_key(key)?;
        Ok(self.0.record(key)?.map(|record| record.meta(self.0.store.store_id())))
    }
}

#[async_trait]
impl ListableStore for LocalPrefixSnapshot {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        let (inner, prefix) = (Arc::clone(&self.0), prefix.clone());
        run_blocking(move || {
            let (keys, cursor) = inner.keys_below(&prefix, &page, |name, record| inner.entry(name, record))?;
            Ok(KeyPage::new(keys, cursor))
        })
        .await
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        let (inner, prefix) = (Arc::clone(&self.0), prefix.clone());
        run_blocking(move || inner.list_dir(&prefix, &page)).await
    }
}

#[async_trait]
impl PrefixSnapshot for LocalPrefixSnapshot {
    fn prefix(&self) -> &Prefix {
        &self.0.prefix
    }

    fn watermark(&self) -> Watermark {
        Watermark::from_u64(self.0.at)
    }

    fn len(&self) -> u64 {
        self.0.records.entries()
    }

    fn intents(&self) -> &[Intent] {
        &self.0.intents
    }

    fn is_valid(&self) -> bool {
        self.0.pin.is_valid()
    }

    async fn list_values(&self, prefix: &Prefix, page: PageRequest) -> Result<ValuePage, StoreError> {
        if !self.0.pin.touch() {
            return Err(StoreError::SnapshotExpired);
        }
        let (inner, prefix, page) = (Arc::clone(&self.0), prefix.clone(), page.with_values());
        run_blocking(move || {
            let (keys, cursor) = inner.keys_below(&prefix, &page, |name, record| inner.listed_value(name, record))?;
            Ok(ValuePage { keys, cursor })
        })
        .await
    }
}

impl fmt::Debug for LocalPrefixSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalPrefixSnapshot").field("prefix", &self.0.prefix).field("at", &self.0.at).finish()
    }
}
