//! Opening and closing of stores.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use zarrd_array::Arrays;
use zarrd_client::HttpStore;
use zarrd_store::{
    BoxError, ListableStore, MemoryStore, MountName, Mounts, OpenOptions, Pieces, Prefix, ReadableStore, SnapshotStore,
    StoreError,
};
use zarrd_store_local::{Access, DirectoryForm, IndexKind, LocalStore, OpenError, Options, Purpose, Recovery};

use crate::{
    config::{Endpoint, ForeignUrl, Location, Mount, ServerEndpoint, WriteLimits},
    transfer::{DEFAULT_MAX_KEYS, Sink, Source, StoreSink, StoreSource, server_source},
};

/// Advice for commands that can also use a running server.
const IN_USE: &str =
    "if that is a zarrd server, work through it with --server URL (such as http://127.0.0.1:8000), or stop it first";

/// A store to be served.
pub(crate) enum ServedStore {
    /// A persistent store.
    Local(LocalStore),
    /// A store in memory.
    Memory(MemoryStore),
    /// A store that other programs write.
    Foreign(zarrd_store::ServedStore),
}

/// The stores to be served: one at the root, and others below names.
pub(crate) struct ServedStores {
    /// The locations of all of them.
    identity: String,
    root: ServedStore,
    mounts: BTreeMap<MountName, ServedStore>,
    /// The cache of pieces of distant stores, if there is one.
    pieces: Option<Pieces>,
}

/// An open store, local or behind a server.
pub(crate) enum OpenEndpoint {
    /// A store on this machine.
    Local(LocalStore),
    /// A store that other programs write.
    Foreign(Arc<dyn SnapshotStore>),
    /// The store of a server.
    Server(HttpStore),
}

/// An open store that values are written into.
pub(crate) enum OpenSink {
    /// A store on this machine.
    Local(LocalStore),
    /// The store of a server.
    Server(HttpStore),
}

/// Content of a directory before a store is opened in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirectoryState {
    /// It does not exist, or is empty.
    Empty,
    /// It is not empty.
    NotEmpty,
}

/// Errors of opening a store.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenStoreError {
    /// The store cannot be opened.
    #[error("cannot open the store {location}")]
    Open {
        /// The store.
        location: Location,
        /// Reason.
        #[source]
        source: OpenError,
    },
    /// The store with data of other programs cannot be opened.
    #[error("cannot open the store {url}")]
    OpenForeign {
        /// The store.
        url: ForeignUrl,
        /// Reason.
        #[source]
        source: BoxError,
    },
    /// Another process has opened the store.
    #[error("{locked}; {advice}")]
    InUse {
        /// Error that names the store and the process.
        locked: OpenError,
        /// Advice to the user.
        advice: &'static str,
    },
    /// The directory has files of other programs.
    #[error("{0} is not empty and not a store of zarrd; to read the files of other programs, write --store dir:{0}, and to copy them into a store, zarrd import {0}", directory.display())]
    ForeignFiles {
        /// The directory.
        directory: PathBuf,
    },
    /// The store does not exist.
    #[error("no store at {location}")]
    NotFound {
        /// Location of the store.
        location: Location,
    },
    /// The client of a server cannot be created.
    #[error("cannot create a client for {url}")]
    Client {
        /// URL of the server.
        url: String,
        /// Reason.
        #[source]
        source: zarrd_client::BuildError,
    },
}

/// Opens or creates a local store, and rolls back interrupted operations. `advice` is part of the error if another
/// process has opened the store.
pub(crate) async fn open_for_writing(
    location: &Location,
    limits: WriteLimits,
    advice: &'static str,
) -> Result<LocalStore, OpenStoreError> {
    let store = open_with(location, advice, limits.into()).await?;
    settle_interrupted_operations(&store).await;
    Ok(store)
}

/// Rolls back the operations that were interrupted when the store was last used. A failure does not prevent the store
/// from being used.
pub(crate) async fn settle_interrupted_operations(store: &LocalStore) {
    let arrays = Arrays::new(Arc::new(store.clone()), zarrd_array::Options::default());
    if let Err(error) = arrays.hierarchies().settle_intents().await {
        let error = &error as &dyn std::error::Error;
        tracing::error!(error, "cannot roll back interrupted operations; the next start retries");
    }
}

/// Opens an existing local store read-only. Nothing is written into its directory.
pub(crate) async fn open_for_reading(location: &Location, advice: &'static str) -> Result<LocalStore, OpenStoreError> {
    match directory_state(location)? {
        DirectoryState::Empty => Err(OpenStoreError::NotFound { location: location.clone() }),
        DirectoryState::NotEmpty => {
            open_with(location, advice, Options { access: Access::ReadOnly, ..Options::default() }).await
        }
    }
}

/// Opens an existing local store for reading and writing.
pub(crate) async fn open_existing_for_writing(
    location: &Location,
    limits: WriteLimits,
    advice: &'static str,
) -> Result<LocalStore, OpenStoreError> {
    match directory_state(location)? {
        DirectoryState::Empty => Err(OpenStoreError::NotFound { location: location.clone() }),
        DirectoryState::NotEmpty => open_for_writing(location, limits, advice).await,
    }
}

/// Opens a local store for a purpose. Interrupted operations are not settled.
pub(crate) async fn open_for(
    purpose: Purpose,
    location: &Location,
    limits: WriteLimits,
    advice: &'static str,
) -> Result<LocalStore, OpenStoreError> {
    open_with(location, advice, Options { purpose, ..limits.into() }).await
}

/// Reads what is whole of a store that may be damaged. Nothing is written into its directory.
pub(crate) async fn open_recovery(location: &Location, advice: &'static str) -> Result<Recovery, OpenStoreError> {
    let not_found = || OpenStoreError::NotFound { location: location.clone() };
    if directory_state(location)? == DirectoryState::Empty {
        return Err(not_found());
    }
    let directory = location.directory().ok_or_else(not_found)?;
    Recovery::open(directory).await.map_err(|source| open_error(location, directory, advice, source))
}

async fn open_with(location: &Location, advice: &'static str, options: Options) -> Result<LocalStore, OpenStoreError> {
    let (directory, index) = match location {
        Location::Sled(directory) => (directory, IndexKind::Sled),
        Location::Redb(directory) => (directory, IndexKind::Redb),
        Location::Memory | Location::Foreign(_) => {
            return Err(OpenStoreError::NotFound { location: location.clone() });
        }
    };
    let opened = LocalStore::open(directory, Options { index, ..options }).await;
    opened.map_err(|source| open_error(location, directory, advice, source))
}

fn open_error(location: &Location, directory: &Path, advice: &'static str, source: OpenError) -> OpenStoreError {
    match source {
        OpenError::NotAStore { .. }
            if DirectoryForm::of(directory).is_ok_and(|form| form == DirectoryForm::Foreign) =>
        {
            OpenStoreError::ForeignFiles { directory: directory.to_owned() }
        }
        locked @ OpenError::Locked { .. } => OpenStoreError::InUse { locked, advice },
        source => OpenStoreError::Open { location: location.clone(), source },
    }
}

/// Opens a store that other programs write, for reading.
pub(crate) async fn open_foreign(
    url: &ForeignUrl,
    options: &OpenOptions<'_>,
) -> Result<Arc<dyn SnapshotStore>, OpenStoreError> {
    url.open(options).await.map_err(|source| OpenStoreError::OpenForeign { url: url.clone(), source })
}

impl From<WriteLimits> for Options {
    fn from(limits: WriteLimits) -> Self {
        let WriteLimits { commit_buffer, retained, snapshots, scrub } = limits;
        Self {
            commit_buffer_bytes: commit_buffer,
            max_pinned_bytes: retained,
            max_snapshot_bytes: snapshots,
            scrub,
            ..Self::default()
        }
    }
}

/// Checks whether the directory of a store is empty.
pub(crate) fn directory_state(location: &Location) -> Result<DirectoryState, OpenStoreError> {
    let Some(directory) = location.directory() else { return Ok(DirectoryState::Empty) };
    match fs::read_dir(directory).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Ok(DirectoryState::NotEmpty),
        Ok(false) => Ok(DirectoryState::Empty),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(DirectoryState::Empty),
        Err(source) => {
            let source = OpenError::Io { action: "list", path: directory.to_owned(), source };
            Err(OpenStoreError::Open { location: location.clone(), source })
        }
    }
}

/// The absolute path without symbolic links. Unlike with [`Path::canonicalize`], the end of the path need not exist.
pub(crate) fn canonical_path(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    for ancestor in absolute.ancestors() {
        match ancestor.canonicalize() {
            Ok(real) => return Ok(real.join(absolute.strip_prefix(ancestor).unwrap_or(Path::new("")))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(absolute)
}

/// A client of the store of a server.
pub(crate) fn connect(server: &ServerEndpoint) -> Result<HttpStore, OpenStoreError> {
    let ServerEndpoint { base, token } = server.clone();
    let (url, builder) = (base.to_string(), HttpStore::builder(base));
    let builder = token.into_iter().fold(builder, |builder, token| builder.token(token));
    builder.build().map_err(|source| OpenStoreError::Client { url, source })
}

impl ServedStore {
    /// Opens a store. With write access, it is created if it does not exist; one that other programs write has to exist,
    /// and its URL says whether it is written. The excluded files of the options are not served.
    pub(crate) async fn open(
        location: &Location,
        access: Access,
        limits: WriteLimits,
        options: &OpenOptions<'_>,
    ) -> Result<Self, OpenStoreError> {
        const IN_USE: &str = "a store can be opened by one process only";
        match (location, access) {
            (Location::Memory, _) => Ok(Self::Memory(MemoryStore::new())),
            (Location::Foreign(url), Access::ReadOnly) => {
                open_foreign(url, options).await.map(zarrd_store::ServedStore::read_only).map(Self::Foreign)
            }
            (Location::Foreign(url), Access::ReadWrite) => {
                let opened = url.open_to_serve(options).await.map(Self::Foreign);
                opened.map_err(|source| OpenStoreError::OpenForeign { url: url.clone(), source })
            }
            (location, Access::ReadWrite) => open_for_writing(location, limits, IN_USE).await.map(Self::Local),
            (location, Access::ReadOnly) => open_for_reading(location, IN_USE).await.map(Self::Local),
        }
    }

    /// The store as the server needs it.
    pub(crate) fn shared(&self) -> zarrd_store::ServedStore {
        match self {
            Self::Local(store) => Arc::new(store.clone()).into(),
            Self::Memory(store) => Arc::new(store.clone()).into(),
            Self::Foreign(store) => store.clone(),
        }
    }

    /// Closes the store.
    pub(crate) async fn close(self) -> Result<(), StoreError> {
        match self {
            Self::Local(store) => store.close().await,
            Self::Memory(_) | Self::Foreign(_) => Ok(()),
        }
    }
}

impl ServedStores {
    /// Opens the stores: that at the root, and mounts that other programs write, as [`ServedStore::open`] does, and other
    /// mounts for reading.
    pub(crate) async fn open(
        root: &Location,
        access: Access,
        limits: WriteLimits,
        (mounts, mount_access, options): (&[Mount], Access, &OpenOptions<'_>),
    ) -> Result<Self, OpenStoreError> {
        let names = mounts.iter().map(|mount| format!("\n{mount}"));
        let identity = format!("{root}{}", names.collect::<String>());
        let root = ServedStore::open(root, access, limits, options).await?;
        let pieces = options.pieces.cloned();
        let mut stores = Self { identity, root, mounts: BTreeMap::new(), pieces };
        for Mount { name, store } in mounts {
            let access = if store.is_foreign() { mount_access } else { Access::ReadOnly };
            match ServedStore::open(store, access, limits, options).await {
                Ok(store) => drop(stores.mounts.insert(name.clone(), store)),
                Err(error) => {
                    // The error of opening is the one to report.
                    let _ = stores.close().await;
                    return Err(error);
                }
            }
        }
        Ok(stores)
    }

    /// The stores as the server needs them.
    pub(crate) fn shared(&self) -> zarrd_store::ServedStore {
        let root = self.root.shared();
        if self.mounts.is_empty() {
            return root.with_pieces(self.pieces.clone());
        }
        // Stores of zarrd itself are mounted for reading.
        let served = |store: &ServedStore| match store {
            ServedStore::Foreign(store) => store.clone(),
            store => zarrd_store::ServedStore::read_only(store.shared().reads().clone()),
        };
        let mounts = self.mounts.iter().map(|(name, store)| (name.clone(), served(store)));
        Mounts::new(&self.identity, root, mounts.collect()).served().with_pieces(self.pieces.clone())
    }

    /// Closes all of them; returns the first error.
    pub(crate) async fn close(self) -> Result<(), StoreError> {
        let mut closed = self.root.close().await;
        for (_, store) in self.mounts {
            closed = closed.and(store.close().await);
        }
        closed
    }
}

impl OpenEndpoint {
    /// Opens an existing store for reading.
    pub(crate) async fn for_reading(endpoint: &Endpoint) -> Result<Self, OpenStoreError> {
        match endpoint {
            Endpoint::Local(Location::Foreign(url)) => {
                open_foreign(url, &OpenOptions::default()).await.map(Self::Foreign)
            }
            Endpoint::Local(location) => open_for_reading(location, IN_USE).await.map(Self::Local),
            Endpoint::Server(server) => connect(server).map(Self::Server),
        }
    }

    /// The store, for listing.
    pub(crate) fn listable(&self) -> &dyn ListableStore {
        match self {
            Self::Local(store) => store,
            Self::Foreign(store) => store,
            Self::Server(store) => store,
        }
    }

    /// The store, for reading.
    pub(crate) fn readable(&self) -> &dyn ReadableStore {
        match self {
            Self::Local(store) => store,
            Self::Foreign(store) => store,
            Self::Server(store) => store,
        }
    }

    /// A prefix of the store as the source of a transfer: as of one commit, if the store has commits.
    pub(crate) async fn source(&self, prefix: Prefix) -> Result<Box<dyn Source>, StoreError> {
        let max_keys = Some(DEFAULT_MAX_KEYS);
        Ok(match self {
            // No other process changes it meanwhile.
            Self::Local(store) => Box::new(StoreSource { store: store.clone(), prefix, max_keys: None }),
            Self::Foreign(store) => Box::new(StoreSource { store: Arc::clone(store), prefix, max_keys }),
            Self::Server(store) => server_source(store.clone(), prefix, DEFAULT_MAX_KEYS).await?,
        })
    }

    /// Closes the store.
    pub(crate) async fn close(self) -> Result<(), StoreError> {
        match self {
            Self::Local(store) => store.close().await,
            Self::Foreign(_) | Self::Server(_) => Ok(()),
        }
    }
}

impl OpenSink {
    /// Opens or creates a store.
    pub(crate) async fn open(endpoint: &Endpoint, limits: WriteLimits) -> Result<Self, OpenStoreError> {
        match endpoint {
            Endpoint::Local(location) => open_for_writing(location, limits, IN_USE).await.map(Self::Local),
            Endpoint::Server(server) => connect(server).map(Self::Server),
        }
    }

    /// The store, for listing.
    pub(crate) fn listable(&self) -> &dyn ListableStore {
        match self {
            Self::Local(store) => store,
            Self::Server(store) => store,
        }
    }

    /// A prefix of the store as the sink of a transfer.
    pub(crate) fn sink(&self, prefix: Prefix) -> Box<dyn Sink> {
        match self {
            Self::Local(store) => Box::new(StoreSink { store: store.clone(), prefix }),
            Self::Server(store) => Box::new(StoreSink { store: store.clone(), prefix }),
        }
    }

    /// Closes the store.
    pub(crate) async fn close(self) -> Result<(), StoreError> {
        match self {
            Self::Local(store) => store.close().await,
            Self::Server(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_become_options() {
        let limits = WriteLimits { commit_buffer: Some(1), retained: Some(2), snapshots: Some(3), scrub: None };
        let options: Options = limits.into();
        let limits = (options.commit_buffer_bytes, options.max_pinned_bytes, options.max_snapshot_bytes);
        assert_eq!(limits, (Some(1), Some(2), Some(3)));
        let options: Options = WriteLimits::default().into();
        assert_eq!((options.commit_buffer_bytes, options.max_pinned_bytes), (None, None));
    }

    #[test]
    fn canonical_path_follows_links_and_allows_a_missing_end() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        fs::create_dir(real.join("data")).unwrap();
        std::os::unix::fs::symlink(real.join("data"), real.join("link")).unwrap();
        assert_eq!(canonical_path(&real.join("link/new/store")).unwrap(), real.join("data/new/store"));
        assert_eq!(canonical_path(&real.join("data")).unwrap(), real.join("data"));
    }
}
