//! Opening stores, and telling why they do not open.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use array::Arrays;
use client::{BaseUrl, HttpStore};
use store::{ListableStore, MemoryStore, Prefix, ReadableStore, TransactionalStore};
use store_local::{Access, IndexKind, LocalStore, OpenError, Options, Purpose};

use crate::{
    config::{Location, Place, WriteLimits},
    exit::Failure,
    transfer::{MOST_KEYS, Sink, Source, StoreSink, StoreSource},
};

/// A store that is served.
pub(crate) enum ServedStore {
    /// One that keeps what it is given.
    Local(LocalStore),
    /// One that does not.
    Memory(MemoryStore),
}

/// A store that keys are moved from or to.
pub(crate) enum OpenPlace {
    /// One of this machine.
    Local(LocalStore),
    /// That of a server.
    Server(HttpStore),
}

/// What a directory holds before a store is opened in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occupancy {
    /// It is not there, or empty.
    Vacant,
    /// Something is in it.
    Occupied,
}

/// Opens a store of this machine, or makes it, and undoes what was interrupted in it. `advice` is what is said where another process has it.
pub(crate) async fn open_to_write(
    location: &Location,
    limits: WriteLimits,
    advice: &'static str,
) -> Result<LocalStore, Failure> {
    let store = open_with(location, advice, limits.into()).await?;
    undo_interrupted(&store).await;
    Ok(store)
}

/// Undoes the operations that were interrupted when the store was last used. What cannot be undone is no reason not to open it.
async fn undo_interrupted(store: &LocalStore) {
    let arrays = Arrays::new(Arc::new(store.clone()), array::Options::default());
    if let Err(error) = arrays.hierarchies().settle_intents().await {
        let error = &error as &dyn std::error::Error;
        tracing::error!(error, "operations that were interrupted cannot be looked for; the next start tries again");
    }
}

/// Opens a store of this machine, which must be there. Nothing is written into it.
pub(crate) async fn open_to_read(location: &Location, advice: &'static str) -> Result<LocalStore, Failure> {
    match occupancy(location)? {
        Occupancy::Vacant => Err(Failure::NoStore { location: location.clone() }),
        Occupancy::Occupied => {
            open_with(location, advice, Options { access: Access::ReadOnly, ..Options::default() }).await
        }
    }
}

/// The same of a store that must be there.
pub(crate) async fn open_existing_to_write(
    location: &Location,
    limits: WriteLimits,
    advice: &'static str,
) -> Result<LocalStore, Failure> {
    match occupancy(location)? {
        Occupancy::Vacant => Err(Failure::NoStore { location: location.clone() }),
        Occupancy::Occupied => open_to_write(location, limits, advice).await,
    }
}

/// Makes a store of this machine that is of no use before [`LocalStore::complete`].
pub(crate) async fn make_to_fill(
    location: &Location,
    limits: WriteLimits,
    advice: &'static str,
) -> Result<LocalStore, Failure> {
    open_with(location, advice, Options { purpose: Purpose::Fill, ..limits.into() }).await
}

async fn open_with(location: &Location, advice: &'static str, options: Options) -> Result<LocalStore, Failure> {
    let (directory, index) = match location {
        Location::Sled(directory) => (directory, IndexKind::Sled),
        Location::Redb(directory) => (directory, IndexKind::Redb),
        Location::Memory => return Err(Failure::NoStore { location: location.clone() }),
    };
    LocalStore::open(directory, Options { index, ..options }).await.map_err(|source| match source {
        locked @ OpenError::Locked { .. } => Failure::InUse { locked, advice },
        source => Failure::Open { location: location.clone(), source },
    })
}

impl From<WriteLimits> for Options {
    fn from(limits: WriteLimits) -> Self {
        let WriteLimits { commit_buffer, retained } = limits;
        Self { commit_buffer_bytes: commit_buffer, max_pinned_bytes: retained, ..Self::default() }
    }
}

/// Whether there is anything where a store is to be.
pub(crate) fn occupancy(location: &Location) -> Result<Occupancy, Failure> {
    let Some(directory) = location.directory() else { return Ok(Occupancy::Vacant) };
    match fs::read_dir(directory).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Ok(Occupancy::Occupied),
        Ok(false) => Ok(Occupancy::Vacant),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Occupancy::Vacant),
        Err(source) => {
            let path = directory.to_owned();
            Err(Failure::Open { location: location.clone(), source: OpenError::Io { action: "list", path, source } })
        }
    }
}

/// A path as the file system knows it, also where its end is not there yet, so that two can be compared.
pub(crate) fn resolved(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    for above in absolute.ancestors() {
        match above.canonicalize() {
            Ok(real) => return Ok(real.join(absolute.strip_prefix(above).unwrap_or(Path::new("")))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(absolute)
}

/// The store of the server at `base`.
pub(crate) fn remote(base: &BaseUrl) -> Result<HttpStore, Failure> {
    HttpStore::new(base.clone()).map_err(|source| Failure::Client { url: base.to_string(), source })
}

impl ServedStore {
    /// Opens a store; one that is written to is made where it is not there.
    pub(crate) async fn open(location: &Location, access: Access, limits: WriteLimits) -> Result<Self, Failure> {
        const IN_USE: &str = "only one process can have a store open";
        match (location, access) {
            (Location::Memory, _) => Ok(Self::Memory(MemoryStore::new())),
            (location, Access::ReadWrite) => open_to_write(location, limits, IN_USE).await.map(Self::Local),
            (location, Access::ReadOnly) => open_to_read(location, IN_USE).await.map(Self::Local),
        }
    }

    /// The store as the server wants it.
    pub(crate) fn shared(&self) -> Arc<dyn TransactionalStore> {
        match self {
            Self::Local(store) => Arc::new(store.clone()),
            Self::Memory(store) => Arc::new(store.clone()),
        }
    }

    /// Closes it.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        match self {
            Self::Local(store) => Ok(store.close().await?),
            Self::Memory(_) => Ok(()),
        }
    }
}

impl OpenPlace {
    /// Opens a store to put keys into, or makes it.
    pub(crate) async fn for_writing(place: &Place, limits: WriteLimits) -> Result<Self, Failure> {
        match place {
            Place::Local(location) => open_to_write(location, limits, IN_USE).await.map(Self::Local),
            Place::Server(base) => remote(base).map(Self::Server),
        }
    }

    /// Opens a store to take keys from.
    pub(crate) async fn for_reading(place: &Place) -> Result<Self, Failure> {
        match place {
            Place::Local(location) => open_to_read(location, IN_USE).await.map(Self::Local),
            Place::Server(base) => remote(base).map(Self::Server),
        }
    }

    /// The store, to be listed.
    pub(crate) fn listable(&self) -> &dyn ListableStore {
        match self {
            Self::Local(store) => store,
            Self::Server(store) => store,
        }
    }

    /// The store, to be read.
    pub(crate) fn readable(&self) -> &dyn ReadableStore {
        match self {
            Self::Local(store) => store,
            Self::Server(store) => store,
        }
    }

    /// What lies below a prefix.
    pub(crate) fn source(&self, prefix: Prefix) -> Box<dyn Source> {
        match self {
            Self::Local(store) => Box::new(StoreSource { store: store.clone(), prefix, most: None }),
            Self::Server(store) => Box::new(StoreSource { store: store.clone(), prefix, most: Some(MOST_KEYS) }),
        }
    }

    /// A prefix to put keys below.
    pub(crate) fn sink(&self, prefix: Prefix) -> Box<dyn Sink> {
        match self {
            Self::Local(store) => Box::new(StoreSink { store: store.clone(), prefix }),
            Self::Server(store) => Box::new(StoreSink { store: store.clone(), prefix }),
        }
    }

    /// Closes it.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        match self {
            Self::Local(store) => Ok(store.close().await?),
            Self::Server(_) => Ok(()),
        }
    }
}

const IN_USE: &str =
    "if that is a zarrd server, work through it with --server URL (such as http://127.0.0.1:8000), or stop it first";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_become_options() {
        let options: Options = WriteLimits { commit_buffer: Some(1), retained: Some(2) }.into();
        assert_eq!((options.commit_buffer_bytes, options.max_pinned_bytes), (Some(1), Some(2)));
        let options: Options = WriteLimits::default().into();
        assert_eq!((options.commit_buffer_bytes, options.max_pinned_bytes), (None, None));
    }

    #[test]
    fn paths_are_resolved_through_links_and_beyond_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        fs::create_dir(real.join("data")).unwrap();
        std::os::unix::fs::symlink(real.join("data"), real.join("link")).unwrap();
        assert_eq!(resolved(&real.join("link/new/store")).unwrap(), real.join("data/new/store"));
        assert_eq!(resolved(&real.join("data")).unwrap(), real.join("data"));
    }
}
