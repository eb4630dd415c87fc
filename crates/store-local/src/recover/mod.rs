//! Reading what is whole of a store that is damaged, without writing into it.
//!
//! ```text
//!  index pages ──▶ records, each with its own checksum ─┐
//!  log frames  ──▶ changes, over the records            ├─▶ the last value of each key: certain or doubtful
//!  value files ──▶ footers, for keys that are not named ┘   and what is lost, as far as that is known
//! ```
//!
//! Neither sled nor redb is used: their files are parsed page by page. What is **certain** was proven to be the state
//! after the last commit: the page of a record is the current one, and no later commit group is missing. Anything else
//! that agrees with its checksum is **doubtful**: it was the value of its key once, or was uploaded and never committed.

mod footers;
mod log_scan;
mod merge;
mod value;

use std::{fs, path::Path, sync::Arc};

use bytes::Bytes;
use futures::stream;
use zarrd_store::{Key, Payload, StoreError};

pub use self::value::{Certainty, Loss, RecoverableValue};
use self::{log_scan::LogScan, merge::Found, value::Source};
use crate::{
    DirectoryForm, IndexKind, OpenError,
    blocking::run_blocking,
    checkpoint::Generations,
    clean_shutdown,
    error::missing_file,
    index::is_in_use,
    index_pages::read_state,
    lock::Lock,
    log_key::LogKey,
    open::Identity,
    paths::Paths,
    record::{FileRef, Location},
    values::{Buffers, Directory, OpenValue},
};

/// A store that is read as far as it is whole.
///
/// The store is locked for reading until this is dropped.
pub struct Recovery {
    values: Vec<RecoverableValue>,
    losses: Vec<Loss>,
    index: Option<IndexKind>,
    /// `None` if the directory of values cannot be opened.
    directory: Option<Directory>,
    buffers: Buffers,
    operations: u64,
    _lock: Lock,
}

impl Recovery {
    /// Reads index, log and footers of the store in a directory, or of what is left of one. Writes nothing there.
    ///
    /// Fails if there is no part of a store, if the store has a newer format, or if it is in use.
    pub async fn open(dir: &Path) -> Result<Self, OpenError> {
        let dir = dir.to_owned();
        let opening = zarrd_executor::run_blocking(move || open(&dir));
        let failed = |error| OpenError::io("read", "the store")(std::io::Error::other(error));
        opening.await.map_err(failed)?
    }

    /// The values in the order of their keys, one for each key.
    pub fn values(&self) -> &[RecoverableValue] {
        &self.values
    }

    /// The known losses except those that reading a value shows.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// The kind of the store's index, if it is known.
    pub fn index(&self) -> Option<IndexKind> {
        self.index
    }

    /// The number of operations of several commits that were under way, which are not recovered.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// The bytes of a value. Fails, at the start or at any byte, with [`StoreError::Corrupt`] if they are damaged.
    pub async fn read(&self, value: &RecoverableValue) -> Result<Payload, StoreError> {
        let key = &value.key;
        let record = match &value.source {
            Source::Record(record) => record.clone(),
            Source::Bulk(bulk, index) => {
                let (bulk, key, index) = (Arc::clone(bulk), key.clone(), *index);
                run_blocking(move || bulk.record(&key, index)).await?
            }
            // The record had the attributes.
            Source::File(file) => return self.file_payload(key, *file).await,
        };
        let payload = match record.location {
            Location::Inline(bytes) => Payload::from_bytes(bytes),
            Location::File(file) => self.file_payload(key, file).await?,
        };
        Ok(payload.with_attributes(record.attributes))
    }

    async fn file_payload(&self, key: &Key, file: FileRef) -> Result<Payload, StoreError> {
        let directory = self.directory.as_ref().ok_or_else(|| missing_file(key, &file.id.path()))?;
        let open = OpenValue::open(directory, key, file, &self.buffers).await?;
        let stream = stream::try_unfold((open, 0..file.size), |(mut open, mut range)| async move {
            if range.is_empty() {
                return Ok(None);
            }
            let bytes: Bytes = open.read(&mut range).await?;
            Ok(Some((bytes, (open, range))))
        });
        Ok(Payload::sized(file.size, stream))
    }
}

impl std::fmt::Debug for Recovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recovery").field("values", &self.values.len()).field("losses", &self.losses).finish()
    }
}

fn open(dir: &Path) -> Result<Recovery, OpenError> {
    let paths = Paths::at(dir);
    let no_store = || OpenError::NotAStore { dir: dir.to_owned() };
    match DirectoryForm::of(dir).map_err(OpenError::io("list", dir))? {
        DirectoryForm::Empty | DirectoryForm::Foreign => return Err(no_store()),
        DirectoryForm::Store | DirectoryForm::Part(_) => {}
    }
    let lock = Lock::take_shared(&paths)?;
    let identity = Identity::read_either(&paths)?;
    let mut found = match &identity {
        Some(identity) => read_store(&paths, identity)?,
        None => Found::without_identity(),
    };
    let (directory, buffers) = (Directory::open(&paths.values(), None), Buffers::default());
    if found.needs_footers() {
        footers::scan(&paths.values(), directory.as_ref().ok(), &buffers, |file| found.add_file(file));
    }
    if let Err(error) = &directory {
        found.add_damage(format!("values: {error}"));
    }
    let (values, losses, operations) = found.into_values();
    if identity.is_none() && values.is_empty() {
        // If nothing at all can be read, the reason is of more use than that there is no store.
        let unreadable = Identity::read_reason(&paths);
        return Err(unreadable.unwrap_or_else(no_store));
    }
    let index = identity.map(|identity| identity.index);
    Ok(Recovery { values, losses, index, directory: directory.ok(), buffers, operations, _lock: lock })
}

/// Reads index and log.
fn read_store(paths: &Paths, identity: &Identity) -> Result<Found, OpenError> {
    let generations = Generations::read(paths).map(|generations| generations.dir());
    // Without the file `generation`, the newest one is taken.
    let dir = generations.ok().filter(|dir| dir.is_dir()).unwrap_or_else(|| newest_generation(paths));
    let main_file = dir.join(identity.index.main_file());
    if is_in_use(&main_file) {
        return Err(OpenError::Locked { dir: paths.dir.clone(), pid: None });
    }
    let index = read_state(&dir, identity.index, identity.id);
    let log: LogScan = log_scan::scan(&paths.log(), LogKey::new(identity.id, identity.secret));
    Ok(Found::new(index, log, clean_shutdown::read_state(paths), identity.id))
}

/// The directory of an index with the highest number.
fn newest_generation(paths: &Paths) -> std::path::PathBuf {
    let entries = fs::read_dir(&paths.dir).into_iter().flatten().flatten();
    let numbered = entries.filter_map(|entry| {
        let number = entry.file_name().to_str()?.strip_prefix("index-")?.parse::<u64>().ok()?;
        entry.path().is_dir().then(|| (number, entry.path()))
    });
    numbered.max_by_key(|(number, _)| *number).map_or_else(|| paths.index(), |(_, path)| path)
}
