//! [`DirStore`], and the store traits for it.

use std::{fs, path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use zarrd_store::{
    ByteRange, CachedMeta, Conditions, DirPage, GetResult, Guarantees, Key, KeyPage, ListableStore, MetadataCache,
    MetadataReader, PageRequest, Prefix, ReadableStore, StoreError, ValueMeta, Version, Writes,
};

use crate::{
    change,
    error::OpenError,
    file_systems::{is_local, staleness},
    inner::Inner,
    list,
    metadata_reader::DirectoryReader,
    options::Options,
    read,
    root::Root,
    writer::Writer,
};

/// A store over a directory of files that other programs go on writing. It only reads, unless it is opened for
/// [writing](Options::writes) too. Clones share one store.
#[derive(Clone, Debug)]
pub struct DirStore {
    pub(crate) inner: Arc<Inner>,
    staleness: Duration,
    near: bool,
}

impl DirStore {
    /// Opens a directory, which has to exist.
    pub async fn open(path: &Path, options: Options) -> Result<Self, OpenError> {
        let given = path.to_owned();
        let opening = zarrd_executor::run_blocking(move || {
            let root = Root::open(&given, &options)?;
            let directory = fs::canonicalize(root.path()).unwrap_or_else(|_| root.path().to_owned());
            let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
            let mounts = String::from_utf8_lossy(&mounts);
            let staleness = staleness(&directory, &mounts);
            // The path as it was given may lead there over links.
            let near = is_local(&directory, &mounts) && is_local(root.path(), &mounts);
            let writer = options.writes.map(|writes| Writer::open(&root, writes, near)).transpose()?;
            let writes = writer.is_some();
            let inner = Arc::new(Inner::new(root, near, writer, &options));
            if writes {
                let not_writable = |source| OpenError::NotWritable { path: given.clone(), source };
                change::start(&inner).map_err(not_writable)?;
            }
            Ok(Self { inner, staleness, near })
        });
        let failed = |error| OpenError::Directory { path: path.to_owned(), source: std::io::Error::other(error) };
        opening.await.map_err(failed)?
    }

    /// The guarantees of the store.
    pub fn guarantees(&self) -> Guarantees {
        let read_only =
            Guarantees { staleness: self.staleness, shared_names: false, near: self.near, ..Guarantees::READ_ONLY };
        match self.inner.writer() {
            Ok(_) => Guarantees {
                writes: Writes::Key,
                conditions: Conditions::ThisProcess,
                conditional_erase: true,
                ..read_only
            },
            Err(_) => read_only,
        }
    }
}

#[async_trait]
impl ReadableStore for DirStore {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        read::get(&self.inner, key, range, None).await
    }

    async fn get_if_match(
        &self,
        key: &Key,
        range: Option<ByteRange>,
        version: Version,
    ) -> Result<Option<GetResult>, StoreError> {
        read::get(&self.inner, key, range, Some(version)).await
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        read::head(&self.inner, key).await
    }

    fn metadata_cache(&self) -> Option<&dyn MetadataCache> {
        Some(self)
    }
}

/// The metadata that the kernel has cached: current ones, which wait for no disk.
impl MetadataCache for DirStore {
    fn cached(&self, key: &Key) -> CachedMeta {
        read::cached_meta(&self.inner, key)
    }

    /// Reads the metadata of files directory by directory.
    fn reader(&self) -> Option<MetadataReader<'_>> {
        let mut reader = self.inner.is_near().then(|| DirectoryReader::new(&self.inner))?;
        Some(Box::new(move |key| reader.read(key)))
    }

    fn is_filled_by_requests(&self) -> bool {
        false
    }
}

#[async_trait]
impl ListableStore for DirStore {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        list::list_prefix(&self.inner, prefix, &page).await
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        list::list_dir(&self.inner, prefix, &page).await
    }
}
