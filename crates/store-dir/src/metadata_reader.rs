//! Metadata of many files.

use std::sync::Arc;

use zarrd_store::{CachedMeta, Key};

use crate::{
    attributes::Kind,
    error::Failure,
    inner::Inner,
    names::is_visible,
    quiet::Precision,
    read,
    root::{Opened, Wait},
};

/// Reads the metadata of files whose keys follow each other in a listing, without waiting for a disk: one system call for
/// each file of a directory, instead of four.
///
/// A directory is read as it was when it was opened, even if another one has taken its place since. A version that is found
/// in the former and not at the path fails the read of it with
/// [`StoreError::Changed`](zarrd_store::StoreError::Changed). A directory that was replaced may have been emptied, so a file
/// that is missing in it is looked up by its path.
pub(crate) struct DirectoryReader<'i> {
    inner: &'i Inner,
    /// The directory of the store, once it was opened.
    root: Option<Arc<Opened>>,
    /// The path of the last directory, and the directory if it exists.
    last: Option<(String, Option<Opened>)>,
}

impl<'i> DirectoryReader<'i> {
    pub(crate) fn new(inner: &'i Inner) -> Self {
        Self { inner, root: None, last: None }
    }

    /// Returns the metadata of the value of a key, unless that takes more than one call, or the file was not read within
    /// the last seconds.
    pub(crate) fn read(&mut self, key: &Key) -> CachedMeta {
        if !is_visible(key.as_str()) {
            return CachedMeta::Known(None);
        }
        self.try_read(key).unwrap_or(CachedMeta::Unknown)
    }

    fn try_read(&mut self, key: &Key) -> Result<CachedMeta, Failure> {
        let (path, name) = key.as_str().rsplit_once('/').unwrap_or((".", key.as_str()));
        let inner = self.inner;
        let Some(directory) = self.directory(path)? else { return Ok(read::cached_meta(inner, key)) };
        // The kernel has a flag against waiting for directories (RESOLVE_CACHED), and none for attributes of files.
        if !inner.recent.insert(directory.attributes.id, name) {
            return Ok(CachedMeta::Unknown);
        }
        let found = inner.root.attributes_of_name(&directory.file, name)?;
        // Where a link leads is found when it is opened.
        let Some(attributes) = found.filter(|found| found.kind == Kind::Regular) else {
            return Ok(read::cached_meta(inner, key));
        };
        let precision = inner.root.file_systems.known_precision(attributes.id);
        let is_quiet = precision == Precision::Fine && inner.wait(key, &attributes, precision).is_none();
        Ok(if is_quiet { CachedMeta::Known(Some(inner.meta(key, &attributes))) } else { CachedMeta::Unknown })
    }

    /// The directory of a path; `None` if there is none.
    fn directory(&mut self, path: &str) -> Result<Option<&Opened>, Failure> {
        if self.last.as_ref().is_none_or(|(last, _)| last != path) {
            let root = match &self.root {
                Some(root) => root,
                None => self.root.insert(self.inner.root.current(Wait::Never)?),
            };
            self.last = Some((path.to_owned(), self.inner.root.look_up_directory(root, path)?));
        }
        Ok(self.last.as_ref().and_then(|(_, directory)| directory.as_ref()))
    }
}
