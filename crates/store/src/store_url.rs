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
    BatchStore, BoxError, CachedStore, Consolidated, Guarantees, Keyed, ListableStore, ReadableStore, Recheck,
    RecheckError, ServedStore, SnapshotStore, WriteableStore,
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
    ///
    /// Files of a directory that are `private` are not read.
    async fn open(&self, private: &[PathBuf]) -> Result<Arc<dyn SnapshotStore>, BoxError>;

    /// Opens the store to be served: for writing too, if the URL says so.
    ///
    /// By default it is opened for reading.
    async fn open_to_serve(&self, private: &[PathBuf]) -> Result<ServedStore, BoxError> {
        self.open(private).await.map(ServedStore::read_only)
    }

    /// True if the URL says that the store is served for writing too.
    fn is_written(&self) -> bool {
        false
    }

    /// The directory of the store, if it is one of this machine.
    fn directory(&self) -> Option<&Path> {
        None
    }
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

    /// Snapshots of a store whose metadata are cached as these options say.
    pub fn cached<S: ReadableStore + ListableStore + 'static>(
        self,
        store: S,
        guarantees: Guarantees,
    ) -> Arc<dyn SnapshotStore> {
        Arc::new(self.keyed(store, guarantees))
    }

    /// A store that is written key by key, whose metadata are cached as these options say.
    pub fn cached_writes<S: ReadableStore + ListableStore + WriteableStore + 'static>(
        self,
        store: S,
        guarantees: Guarantees,
    ) -> Arc<dyn BatchStore> {
        Arc::new(self.keyed(store, guarantees))
    }

    fn keyed<S: ReadableStore + ListableStore + 'static>(
        self,
        store: S,
        guarantees: Guarantees,
    ) -> Keyed<CachedStore<S>> {
        let guarantees = Guarantees { consolidated: self.consolidated, ..guarantees };
        let store = CachedStore::new(store, self.recheck);
        let guarantees = store.guarantees(guarantees);
        Keyed::new(store, guarantees)
    }
}

/// The options of a URL, as names and values, of the text after its `?`.
pub fn url_options(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let options = query.split('&').filter(|option| !option.is_empty());
    options.map(|option| option.split_once('=').unwrap_or((option, "")))
}
