//! Erasing everything below a prefix.

use std::sync::Arc;

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, unlinkat},
    io::Errno,
};
use zarrd_store::{Key, KeyCount, MAX_COUNTED_KEYS, Prefix, StoreError};

use super::{
    directories,
    erase::{ACTION, clean_up},
    spelling,
    tree::{Contents, File, Visitor, walk},
};
use crate::{
    attributes::Kind,
    error::{Failure, change_error},
    faults::Call,
    inner::Inner,
    names::is_visible,
    root::Wait,
    writer::Writer,
};

/// The documents that make a node, and consolidated metadata, which repeat them.
const NODES: [&str; 4] = ["zarr.json", ".zarray", ".zgroup", ".zmetadata"];

/// The documents with the attributes of a node.
const ATTRIBUTES: [&str; 1] = [".zattrs"];

/// The files of a pass. Documents go first, so that a tree which was cut has no arrays without chunks: these would be read
/// as fill values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Documents(&'static [&'static str]),
    Everything,
}

/// Erases the files of a pass.
struct Eraser<'e> {
    inner: &'e Inner,
    writer: &'e Writer,
    pass: Pass,
    /// The path of the directory that is erased.
    top: &'e str,
    count: KeyCount,
}

/// Erases all keys below a prefix, one by one, documents first.
pub(crate) async fn erase_prefix(inner: &Arc<Inner>, prefix: &Prefix) -> Result<KeyCount, StoreError> {
    inner.writer()?;
    if !is_visible(prefix.as_str()) {
        return Ok(KeyCount::exact(0));
    }
    let prefix = prefix.clone();
    inner.run(move |inner| erase_all(inner, prefix.as_str())).await
}

fn erase_all(inner: &Inner, prefix: &str) -> Result<KeyCount, StoreError> {
    let failed = |failure| change_error(ACTION, prefix, failure);
    let writer = inner.writer()?;
    writer.check(&inner.root).map_err(failed)?;
    let directory = prefix.strip_suffix('/').unwrap_or_default();
    match inner.root.open_unfollowed(&writer.folder, directory) {
        Ok(_) => {}
        Err(Failure::File(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG)) => return Ok(KeyCount::exact(0)),
        Err(failure) => return Err(failed(failure)),
    }
    // On a file system that ignores case, the keys below the prefix are those of another one.
    if spelling::other(inner, writer, directory).map_err(failed)?.is_some() {
        return Ok(KeyCount::exact(0));
    }
    let mut eraser =
        Eraser { inner, writer, pass: Pass::Everything, top: prefix, count: KeyCount { count: 0, exact: true } };
    for pass in [Pass::Documents(&NODES), Pass::Documents(&ATTRIBUTES), Pass::Everything] {
        eraser.pass = pass;
        walk(inner, writer, prefix, &mut eraser)?;
    }
    let count = eraser.count;
    clean_up(inner, writer, directory).map_err(failed)?;
    Ok(count)
}

impl Visitor for Eraser<'_> {
    fn visit(&mut self, directory: &OwnedFd, path: &str, file: File<'_>) -> Result<bool, StoreError> {
        let is_in_pass = match self.pass {
            Pass::Documents(names) => names.contains(&file.name),
            Pass::Everything => true,
        };
        // What is no key is not erased with them.
        let Ok(key) = Key::parse(&format!("{path}{}", file.name)) else { return Ok(false) };
        if !is_in_pass || !file.is_shown {
            return Ok(false);
        }
        let is_value = file.kind == Kind::Regular || self.leads_to_value(&key);
        let _turn = self.writer.lock(&key);
        let removed = self
            .inner
            .root
            .faults
            .call(Call::RemoveFile)
            .and_then(|()| unlinkat(directory, file.name, AtFlags::empty()));
        match removed {
            Ok(()) => {
                self.add(is_value);
                Ok(true)
            }
            // Another change has removed or replaced it.
            Err(Errno::NOENT | Errno::ISDIR) => Ok(false),
            Err(error) => Err(change_error(ACTION, key.as_str(), error.into())),
        }
    }

    fn leave(&mut self, path: &str, contents: Contents) -> Result<bool, StoreError> {
        let directory = path.strip_suffix('/').unwrap_or_default();
        let failed = |failure| change_error(ACTION, path, failure);
        match self.pass {
            // Documents are gone for good before a chunk is.
            Pass::Documents(_) if contents == Contents::Changed => {
                directories::sync(self.inner, self.writer, directory).map_err(failed)?;
                Ok(false)
            }
            Pass::Documents(_) => Ok(false),
            Pass::Everything if path == self.top => Ok(false),
            Pass::Everything => {
                let is_removed = directories::remove(self.inner, self.writer, directory);
                if !is_removed && contents == Contents::Changed {
                    directories::sync(self.inner, self.writer, directory).map_err(failed)?;
                }
                Ok(is_removed)
            }
        }
    }
}

impl Eraser<'_> {
    /// True if a link leads to a value, and false if it leads to a directory or nowhere.
    fn leads_to_value(&self, key: &Key) -> bool {
        let found = self.inner.root.look_up(key.as_str(), Wait::Allowed);
        found.is_ok_and(|found| found.is_some_and(|found| found.attributes.kind == Kind::Regular))
    }

    /// Counts what was erased. Below a link to a directory an unknown number of keys was found.
    fn add(&mut self, is_value: bool) {
        let KeyCount { count, exact } = self.count;
        let is_counted = is_value && count < MAX_COUNTED_KEYS as u64;
        self.count = KeyCount { count: count.saturating_add(u64::from(is_counted)), exact: exact && is_counted };
    }
}
