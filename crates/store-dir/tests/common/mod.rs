//! Directories and stores of tests.

#![allow(dead_code, reason = "each test uses some of it")]

use std::{fs, io::Write, path::PathBuf, time::Duration};

use bytes::Bytes;
use futures::TryStreamExt;
use tempfile::TempDir;
use zarrd_store::{
    DirPage, GetResult, Key, KeyPage, ListableStore, PageRequest, Prefix, ReadableStore, StoreError, Version,
};
use zarrd_store_dir::{DirStore, Options};

/// A time in which the clock of a file system ticks.
pub(crate) const TICK: Duration = Duration::from_millis(12);

/// A directory and a store that reads it.
pub(crate) struct Fixture {
    pub(crate) dir: TempDir,
    pub(crate) store: DirStore,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::with(Options::new("dir:test")).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = DirStore::open(dir.path(), options).await.unwrap();
        Self { dir, store }
    }

    pub(crate) fn path(&self, key: &str) -> PathBuf {
        self.dir.path().join(key)
    }

    /// Writes a file, with the directories above it, which is complete then: its time of change is that of a step after
    /// the last write.
    pub(crate) fn write(&self, key: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        std::thread::sleep(TICK);
        fs::set_permissions(&path, fs::metadata(&path).unwrap().permissions()).unwrap();
    }

    /// Writes a file for each key, which contains its key.
    pub(crate) fn write_names(&self, keys: &[&str]) {
        for key in keys {
            self.write(key, key);
        }
    }

    pub(crate) async fn get(&self, key: &str) -> Result<Option<GetResult>, StoreError> {
        within(self.store.get(&Key::parse(key).unwrap(), None)).await
    }

    /// The version and the bytes of a value that exists.
    pub(crate) async fn read(&self, key: &str) -> Result<(Version, Bytes), StoreError> {
        let value = self.get(key).await?.unwrap_or_else(|| panic!("{key} has no value"));
        let version = value.meta.version;
        Ok((version, within(value.bytes()).await?))
    }

    pub(crate) async fn assert_absent(&self, key: &str) {
        assert!(self.get(key).await.unwrap().is_none(), "{key}");
        assert_eq!(within(self.store.head(&Key::parse(key).unwrap())).await.unwrap(), None, "{key}");
    }

    pub(crate) async fn keys(&self, prefix: &str, limit: usize) -> Vec<String> {
        let mut page = PageRequest::first(limit);
        let mut keys = Vec::new();
        loop {
            let KeyPage { keys: found, cursor, .. } =
                within(self.store.list_prefix(&Prefix::parse(prefix).unwrap(), page)).await.unwrap();
            assert!(found.len() <= limit);
            keys.extend(found.iter().map(|entry| entry.key.to_string()));
            let Some(cursor) = cursor else { return keys };
            page = PageRequest::after(limit, cursor);
        }
    }

    /// The children in one order.
    pub(crate) async fn children(&self, prefix: &str, limit: usize) -> Vec<String> {
        let mut page = PageRequest::first(limit);
        let mut children = Vec::new();
        loop {
            let DirPage { keys, prefixes, cursor } =
                within(self.store.list_dir(&Prefix::parse(prefix).unwrap(), page)).await.unwrap();
            let mut found: Vec<_> = keys.iter().map(|entry| entry.key.to_string()).collect();
            found.extend(prefixes.iter().map(ToString::to_string));
            found.sort_unstable();
            assert!(found.len() <= limit);
            children.extend(found);
            let Some(cursor) = cursor else { return children };
            page = PageRequest::after(limit, cursor);
        }
    }
}

/// Waits for a future that must not block for long.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future).await.unwrap_or_else(|_| panic!("an operation blocks"))
}

/// Reads a value to its end, buffer by buffer.
pub(crate) async fn read_to_end(mut value: GetResult) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    while let Some(buffer) = within(value.stream.try_next()).await? {
        bytes.extend_from_slice(&buffer);
    }
    Ok(bytes)
}

/// Writes a value as the atomic writers do.
pub(crate) fn replace(path: &std::path::Path, bytes: &[u8]) {
    let temporary = path.with_extension("0123456789abcdef0123456789abcdef.partial");
    fs::write(&temporary, bytes).unwrap();
    std::thread::sleep(TICK);
    fs::rename(&temporary, path).unwrap();
}

/// Writes a value as the atomic writers do, within one tick of the clock, unless the machine is busy.
pub(crate) fn replace_at_once(path: &std::path::Path, bytes: &[u8]) {
    let temporary = path.with_extension("0123456789abcdef0123456789abcdef.partial");
    fs::write(&temporary, bytes).unwrap();
    fs::rename(&temporary, path).unwrap();
}

/// Overwrites the first bytes of a file in place, with one write.
pub(crate) fn overwrite(path: &std::path::Path, bytes: &[u8]) {
    fs::OpenOptions::new().write(true).open(path).unwrap().write_all(bytes).unwrap();
}
