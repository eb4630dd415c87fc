//! Looks at files one after another.

use std::sync::Arc;

use zarrd_store::{Key, Peek};

use crate::{
    attributes::Kind,
    error::Failure,
    inner::Inner,
    names::is_visible,
    quiet::Precision,
    read,
    root::{Opened, Wait},
};

/// Looks at the files of keys that follow each other in a listing, if that waits for no disk. Those of one directory
/// need one call of the kernel each, instead of four.
///
/// Files are looked at in the directory that was there when it was opened, even if another one has taken its place since.
/// A version that is found there and not at the path fails the read of it with
/// [`StoreError::Changed`](zarrd_store::StoreError::Changed). That nothing is found there says nothing, since a directory that
/// was replaced is emptied: so what is absent is looked up by its path.
pub(crate) struct Looks<'i> {
    inner: &'i Inner,
    /// The directory of the store, once it was opened.
    root: Option<Arc<Opened>>,
    /// The directory of the last key: its path, and what was there.
    last: Option<(String, Option<Opened>)>,
}

impl<'i> Looks<'i> {
    pub(crate) fn new(inner: &'i Inner) -> Self {
        Self { inner, root: None, last: None }
    }

    /// The metadata of the value of a key; unknown if it takes more to learn them, or if the file was not asked for
    /// within the last seconds. Who asks looks at it in another way then.
    pub(crate) fn look(&mut self, key: &Key) -> Peek {
        if !is_visible(key.as_str()) {
            return Peek::Known(None);
        }
        self.try_look(key).unwrap_or(Peek::Unknown)
    }

    fn try_look(&mut self, key: &Key) -> Result<Peek, Failure> {
        let (path, name) = key.as_str().rsplit_once('/').unwrap_or((".", key.as_str()));
        let inner = self.inner;
        let Some(directory) = self.directory(path)? else { return Ok(read::peek(inner, key)) };
        // There is no flag with which the kernel would tell instead of waiting, as there is for directories.
        if !inner.recent.insert(directory.attributes.id, name) {
            return Ok(Peek::Unknown);
        }
        let found = inner.root.attributes_of_name(&directory.file, name)?;
        // Where a link leads is found when it is opened.
        let Some(attributes) = found.filter(|found| found.kind == Kind::Regular) else {
            return Ok(read::peek(inner, key));
        };
        let precision = inner.root.file_systems.known_precision(attributes.id);
        let is_quiet = precision == Precision::Fine && inner.wait(key, &attributes, precision).is_none();
        Ok(if is_quiet { Peek::Known(Some(inner.meta(key, &attributes))) } else { Peek::Unknown })
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
