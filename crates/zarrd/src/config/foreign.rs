//! Stores with data that other programs write: the kinds that zarrd opens.

use std::{fmt, path::Path, str::FromStr, sync::Arc};

use zarrd_store::{BoxError, OpenOptions, ServedStore, SnapshotStore, StoreKind, StoreUrl};

/// The kinds. Another one is its crate and an entry here.
const KINDS: [StoreKind; 3] = [zarrd_store_dir::KIND, zarrd_store_object::KIND, zarrd_store_http::KIND];

/// The URL of a store of one of these kinds.
#[derive(Clone, Debug)]
pub(crate) struct ForeignUrl(Arc<dyn StoreUrl>);

/// The reason why a text is not such a URL. It repeats nothing that may be secret.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct ForeignUrlError(BoxError);

impl ForeignUrl {
    /// True if a text begins as the URL of such a store does, whether it is valid or not.
    pub(crate) fn has_scheme(text: &str) -> bool {
        KINDS.iter().any(|kind| kind.has_scheme(text))
    }

    /// True if a text is what such URLs begin with, without the colon.
    pub(super) fn lacks_colon(text: &str) -> bool {
        KINDS.iter().flat_map(|kind| kind.schemes).any(|scheme| scheme.strip_suffix(':') == Some(text))
    }

    /// The forms of such URLs, as messages show them.
    pub(super) fn forms() -> String {
        KINDS.map(|kind| kind.forms).join(", ")
    }

    /// Opens the store for reading.
    pub(crate) async fn open(&self, options: &OpenOptions<'_>) -> Result<Arc<dyn SnapshotStore>, BoxError> {
        self.0.open(options).await
    }

    /// Opens the store to be served: for writing too, if the URL says so.
    pub(crate) async fn open_to_serve(&self, options: &OpenOptions<'_>) -> Result<ServedStore, BoxError> {
        self.0.open_to_serve(options).await
    }

    /// The reason why pieces of the store are not cached on disk, if they are not.
    pub(crate) fn uncached_reason(&self) -> Option<&'static str> {
        self.0.uncached_reason()
    }

    /// True if the URL says that the store is served for writing too.
    pub(crate) fn is_written(&self) -> bool {
        self.0.is_written()
    }

    /// The directory of the store, if it is one of this machine.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.0.directory()
    }
}

impl FromStr for ForeignUrl {
    type Err = ForeignUrlError;

    /// Parses a text that [has a scheme](Self::has_scheme).
    fn from_str(text: &str) -> Result<Self, ForeignUrlError> {
        let kind = KINDS.iter().find(|kind| kind.has_scheme(text));
        let kind = kind.ok_or_else(|| ForeignUrlError(format!("write {}", Self::forms()).into()))?;
        (kind.parse)(text).map(Self).map_err(ForeignUrlError)
    }
}

impl fmt::Display for ForeignUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for ForeignUrl {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for ForeignUrl {}
