//! The files of a directory.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use crate::{
    clock::{parse_rfc3339, rfc3339},
    credential::Kind,
    denial::ReadError,
    files::{self, io_error},
    id::KeyId,
    key_ring::{Key, KeyRing, MAX_KEYS},
    record_files::RecordFiles,
    watched::Watched,
};

/// The maximum length of a key file in bytes.
const MAX_KEY_LEN: usize = 1024;

/// The maximum length in bytes of the file with the high-water mark of time.
const MAX_CLOCK_LEN: usize = 64;

/// The files of a directory.
pub(super) struct Disk {
    /// Has the file `clock`, and the other directories.
    root: Watched,
    keys: Watched,
    tokens: RecordFiles,
    links: RecordFiles,
    /// The high-water mark of time that is on disk.
    pub(super) clock: SystemTime,
    /// The first expiry that has not passed.
    pub(super) next_expiry: Option<SystemTime>,
}

impl Disk {
    /// Creates the directories that do not exist.
    pub(super) fn create(path: &Path, limit: usize) -> Result<Self, Arc<ReadError>> {
        let [keys, tokens, links] = ["keys", "tokens", "links"].map(|name| path.join(name));
        for dir in [path, &keys, &tokens, &links] {
            files::create_dir(dir)?;
            files::remove_abandoned(dir);
        }
        Ok(Self {
            root: Watched::new(path.to_owned()),
            keys: Watched::new(keys),
            tokens: RecordFiles::new(Kind::Token, tokens, limit),
            links: RecordFiles::new(Kind::Link, links, limit),
            clock: UNIX_EPOCH,
            next_expiry: None,
        })
    }

    /// The path of the file of a key.
    pub(super) fn key_file(&self, id: KeyId) -> PathBuf {
        self.keys.path().join(format!("{id}.json"))
    }

    /// True if there are keys, whether they are readable or not.
    pub(super) fn has_key_files(&self) -> Result<bool, Arc<ReadError>> {
        Ok(!files::list(self.keys.path(), MAX_KEYS)?.is_empty())
    }

    /// Has the keys read again, because one was added or removed.
    pub(super) fn forget_keys(&mut self) {
        self.keys.forget();
    }

    pub(super) fn records(&self, kind: Kind) -> &RecordFiles {
        match kind {
            Kind::Token => &self.tokens,
            Kind::Link => &self.links,
        }
    }

    pub(super) fn records_mut(&mut self, kind: Kind) -> &mut RecordFiles {
        match kind {
            Kind::Token => &mut self.tokens,
            Kind::Link => &mut self.links,
        }
    }

    /// Makes the directory of records show no change, as if it had the same times as before.
    #[cfg(test)]
    pub(super) fn pretend_unchanged(&mut self, kind: Kind) {
        self.records_mut(kind).pretend_unchanged();
    }

    /// Ends the time in which the directories are read again whether they show a change or not.
    #[cfg(test)]
    pub(super) fn settle(&mut self) {
        self.root.settle();
        self.keys.settle();
        self.tokens.settle();
        self.links.settle();
    }

    pub(super) fn clock_file(&self) -> PathBuf {
        self.root.path().join("clock")
    }

    /// Reads the keys, if they may have changed.
    pub(super) fn read_keys(&mut self, now: Instant) -> Result<Option<KeyRing>, ReadError> {
        if !self.keys.is_due(now)? {
            return Ok(None);
        }
        self.ring().map(Some).inspect_err(|_| self.keys.forget())
    }

    fn ring(&self) -> Result<KeyRing, ReadError> {
        let names = files::list(self.keys.path(), MAX_KEYS);
        let names = names.map_err(|error| match error {
            ReadError::TooManyFiles { path, limit } => ReadError::TooManyKeys { path, limit },
            error => error,
        })?;
        let keys = names.iter().filter_map(|name| self.read_key(name).transpose());
        let keys: Vec<Key> = keys.collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return Err(ReadError::NoKeys { path: self.keys.path().to_owned() });
        }
        Ok(KeyRing::new(keys))
    }

    /// Reads a key; `None` if it was dropped meanwhile.
    fn read_key(&self, name: &OsStr) -> Result<Option<Key>, ReadError> {
        let path = self.keys.path().join(name);
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if files::is_missing(&error) => return Ok(None),
            Err(error) => return Err(io_error("inspect", &path)(error)),
        };
        let mode = files::Stamp::of(&metadata).permissions();
        if mode & 0o077 != 0 {
            return Err(ReadError::InsecureKey { path, mode });
        }
        let Some(content) = files::read(&path, MAX_KEY_LEN).map_err(io_error("read", &path))? else { return Ok(None) };
        let id = name.to_str().and_then(|name| name.strip_suffix(".json")?.parse().ok());
        match id.and_then(|id| Key::parse(id, &content)) {
            Some(key) => Ok(Some(key)),
            None => Err(ReadError::InvalidKey { path }),
        }
    }

    /// Reads the high-water mark of time. A damaged or unreadable one is reported, and written again later.
    pub(super) fn read_clock(&mut self, now: Instant) -> Result<(), ReadError> {
        if !self.root.is_due(now)? {
            return Ok(());
        }
        let path = self.clock_file();
        let time = |content: Vec<u8>| parse_rfc3339(str::from_utf8(&content).ok()?.trim_end());
        match files::read(&path, MAX_CLOCK_LEN).map(|content| content.map(time)) {
            Ok(None) => {}
            Ok(Some(Some(time))) => self.clock = self.clock.max(time),
            Ok(Some(None)) => {
                tracing::error!(file = %path.display(), "the high-water mark of time is damaged and ignored");
            }
            Err(error) => {
                tracing::error!(file = %path.display(), %error, "cannot read the high-water mark of time");
            }
        }
        Ok(())
    }

    /// Writes the high-water mark of time, unless a later one is on disk.
    pub(super) fn write_clock(&mut self, now: SystemTime) -> io::Result<()> {
        if now <= self.clock {
            return Ok(());
        }
        files::replace(&self.clock_file(), format!("{}\n", rfc3339(now)).as_bytes())?;
        self.clock = now;
        Ok(())
    }
}
