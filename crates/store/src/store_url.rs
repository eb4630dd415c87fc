//! URLs of stores with data that other programs write: their kinds, and the options that all of them have.
//!
//! A kind of store is a [`StoreKind`] in its crate, whose URLs are [`StoreUrl`]s. A program opens the kinds that it has in a
//! table, and needs to know nothing else about them.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;

use crate::{
    BatchStore, BoxError, CachedStore, Consolidated, Guarantees, Keyed, ListableStore, PieceStore, Pieces,
    ReadableStore, Recheck, RecheckError, ServedStore, SnapshotStore, StorePieces, WriteableStore,
};

/// A kind of stores with data that other programs write.
#[derive(Debug)]
pub struct StoreKind {
    /// What its URLs begin with, such as `s3://`.
    pub schemes: &'static [&'static str],
    /// The forms of its URLs, as messages show them.
    pub forms: &'static str,
    /// Parses a URL that begins with one of the schemes. The error repeats nothing that may be secret.
    pub parse: fn(&str) -> Result<Arc<dyn StoreUrl>, BoxError>,
}

/// The URL of a store with data that other programs write, with its options. It has no credentials, and its text parses to
/// an equal URL.
#[async_trait]
pub trait StoreUrl: fmt::Debug + fmt::Display + Send + Sync {
    /// Opens the store for reading. Servers that open equal URLs agree on versions.
    async fn open(&self, options: &OpenOptions<'_>) -> Result<Arc<dyn SnapshotStore>, BoxError>;

    /// Opens the store to be served: for writing too, if the URL says so.
    ///
    /// By default it is opened for reading.
    async fn open_to_serve(&self, options: &OpenOptions<'_>) -> Result<ServedStore, BoxError> {
        self.open(options).await.map(ServedStore::read_only)
    }

    /// True if the URL says that the store is served for writing too.
    fn is_written(&self) -> bool {
        false
    }

    /// The directory of the store, if it is one of this machine.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// The reason why pieces of the store are not cached, if they are not: for example that its versions are weak.
    fn uncached_reason(&self) -> Option<&'static str> {
        Some("its files are on this machine")
    }
}

/// The options with which a program opens a store.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions<'o> {
    /// Files and directories of the program itself, which a directory is read without.
    pub excluded: &'o [PathBuf],
    /// The cache of pieces of distant stores, if there is one.
    pub pieces: Option<&'o Pieces>,
}

/// The options that URLs of all kinds have: `recheck=5s` and `consolidated=trust`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UrlOptions {
    /// The time after which cached metadata are revalidated.
    pub recheck: Recheck,
    /// The use of consolidated metadata for trees.
    pub consolidated: Consolidated,
}

/// An option of a URL with an invalid value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlOptionError {
    /// The time after which cached metadata are revalidated is invalid.
    #[error("the value of the option `recheck` is invalid")]
    Recheck(#[from] RecheckError),
    /// The value is not `trust`.
    #[error("the option `consolidated` has the value `trust` only: trees are as consolidated metadata say then")]
    Consolidated,
}

impl StoreKind {
    /// True if a text begins as URLs of this kind do.
    pub fn has_scheme(&self, text: &str) -> bool {
        self.schemes.iter().any(|scheme| text.starts_with(scheme))
    }
}

impl UrlOptions {
    /// The options of a URL that has none: consolidated metadata are ignored.
    pub const fn new(recheck: Recheck) -> Self {
        Self { recheck, consolidated: Consolidated::Ignored }
    }

    /// Sets the option `name`; false if it is not one of these.
    pub fn set(&mut self, name: &str, value: &str) -> Result<bool, UrlOptionError> {
        match (name, value) {
            ("recheck", time) => self.recheck = time.parse()?,
            ("consolidated", "trust") => self.consolidated = Consolidated::Trusted,
            ("consolidated", _) => return Err(UrlOptionError::Consolidated),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Renders the options of a URL, `own` ones of its kind first, without those that it has by default.
    pub fn render<T: Into<String>>(self, own: impl IntoIterator<Item = Option<T>>, default: Recheck) -> String {
        let recheck = (self.recheck != default).then(|| format!("recheck={}", self.recheck));
        let consolidated = (self.consolidated == Consolidated::Trusted).then(|| "consolidated=trust".to_owned());
        let own = own.into_iter().flatten().map(Into::into);
        own.chain(recheck).chain(consolidated).collect::<Vec<_>>().join("&")
    }

    /// Snapshots of a store whose metadata are cached as these options say, and its pieces if there is a cache for them.
    pub fn cached<S: ReadableStore + ListableStore + 'static>(
        self,
        store: S,
        guarantees: Guarantees,
        pieces: Option<StorePieces>,
    ) -> Arc<dyn SnapshotStore> {
        let (store, guarantees) = self.cached_metadata(store, guarantees);
        match pieces {
            None => Arc::new(Keyed::new(store, guarantees)),
            Some(pieces) => Arc::new(Keyed::new(PieceStore::new(store, pieces), guarantees)),
        }
    }

    /// A store that is written key by key, whose metadata are cached as these options say, and its pieces if there is a
    /// cache for them.
    pub fn cached_writes<S: ReadableStore + ListableStore + WriteableStore + 'static>(
        self,
        store: S,
        guarantees: Guarantees,
        pieces: Option<StorePieces>,
    ) -> Arc<dyn BatchStore> {
        let (store, guarantees) = self.cached_metadata(store, guarantees);
        match pieces {
            None => Arc::new(Keyed::new(store, guarantees)),
            Some(pieces) => Arc::new(Keyed::new(PieceStore::new(store, pieces), guarantees)),
        }
    }

    fn cached_metadata<S: ReadableStore>(self, store: S, guarantees: Guarantees) -> (CachedStore<S>, Guarantees) {
        let store = CachedStore::new(store, self.recheck);
        let guarantees = store.guarantees(Guarantees { consolidated: self.consolidated, ..guarantees });
        (store, guarantees)
    }
}

/// The options of a URL, as names and values, of the text after its `?`.
pub fn url_options(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let options = query.split('&').filter(|option| !option.is_empty());
    options.map(|option| option.split_once('=').unwrap_or((option, "")))
}
