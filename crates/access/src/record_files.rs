//! The directory of the files of tokens, or of share links.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
    time::Instant,
};

use crate::{
    credential::Kind,
    denial::ReadError,
    files::{self, Stamp},
    id::CredentialId,
    record::{MAX_RECORD_LEN, Record},
    table::Entry,
    watched::Watched,
};

/// A directory with one file per token or share link, whose name is the id and `.json`.
pub(crate) struct RecordFiles {
    kind: Kind,
    watched: Watched,
    /// The maximum number of files.
    limit: usize,
    /// The files that were found, with their stamps before they were read; none if they could not be read.
    known: HashMap<OsString, Option<Stamp>>,
}

/// A difference to what was read before.
pub(crate) enum FileChange {
    /// A file is new, or has changed.
    Found(CredentialId, Entry),
    /// A file does not exist any more.
    Gone(CredentialId),
}

impl RecordFiles {
    pub(crate) fn new(kind: Kind, path: PathBuf, limit: usize) -> Self {
        Self { kind, watched: Watched::new(path), limit, known: HashMap::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.watched.path()
    }

    /// The path of the file of an id.
    pub(crate) fn file(&self, id: CredentialId) -> PathBuf {
        self.path().join(name_of(id))
    }

    /// Creates the file of an id.
    pub(crate) fn create(&mut self, id: CredentialId, content: &[u8]) -> io::Result<()> {
        files::create(&self.file(id), content)?;
        // So that it counts as gone if it is not listed.
        self.known.insert(name_of(id).into(), None);
        Ok(())
    }

    /// Makes the directory show no change, as if it had the same times as before.
    #[cfg(test)]
    pub(crate) fn pretend_unchanged(&mut self) {
        self.watched.pretend_unchanged();
    }

    /// Ends the time in which the directory is read again whether it shows a change or not.
    #[cfg(test)]
    pub(crate) fn settle(&mut self) {
        self.watched.settle();
    }

    /// Reads what changed.
    pub(crate) fn refresh(&mut self, now: Instant) -> Result<Vec<FileChange>, ReadError> {
        if !self.watched.is_due(now)? {
            return Ok(Vec::new());
        }
        let names = files::list(self.path(), self.limit).inspect_err(|_| self.watched.forget())?;
        let mut before = std::mem::take(&mut self.known);
        let mut changes = Vec::new();
        for name in names {
            let path = self.path().join(&name);
            let stamp = match fs::metadata(&path) {
                Ok(metadata) => Some(Stamp::of(&metadata)),
                Err(error) if files::is_missing(&error) => continue,
                Err(_) => None,
            };
            if stamp.is_none() || before.get(&name) != Some(&stamp) {
                match self.read(&name, &path, stamp) {
                    Content::Vanished => continue,
                    Content::Foreign => {}
                    Content::Entry(id, entry) => changes.push(FileChange::Found(id, *entry)),
                }
            }
            before.remove(&name);
            self.known.insert(name, stamp);
        }
        changes.extend(before.into_keys().filter_map(|name| id_of(&name)).map(FileChange::Gone));
        Ok(changes)
    }

    fn read(&self, name: &OsStr, path: &Path, stamp: Option<Stamp>) -> Content {
        let Some(id) = id_of(name) else {
            tracing::warn!(file = %path.display(), "the access directory has a file that is not one of zarrd");
            return Content::Foreign;
        };
        let damaged = |reason: String| {
            tracing::error!(file = %path.display(), reason, "a file of the access directory is damaged; it is denied");
            Content::Entry(id, Box::new(Entry::Damaged(reason.into())))
        };
        if let Some(stamp) = stamp.filter(|stamp| stamp.permissions() & 0o022 != 0) {
            let mode = stamp.permissions();
            return damaged(format!("it is writable by others than its owner (mode {mode:o}); run `chmod 600` on it"));
        }
        match files::read(path, MAX_RECORD_LEN) {
            Ok(None) => Content::Vanished,
            Ok(Some(content)) => match Record::parse(self.kind, id, &content) {
                Ok(record) => Content::Entry(id, Box::new(Entry::valid(self.kind, record))),
                Err(reason) => damaged(reason),
            },
            Err(error) => damaged(error.to_string()),
        }
    }
}

/// The content of a file.
enum Content {
    /// The file does not exist any more.
    Vanished,
    /// The file is not that of a token or share link.
    Foreign,
    Entry(CredentialId, Box<Entry>),
}

fn name_of(id: CredentialId) -> String {
    format!("{id}.json")
}

fn id_of(name: &OsStr) -> Option<CredentialId> {
    name.to_str()?.strip_suffix(".json")?.parse().ok()
}
