//! The kind of store in this crate, for programs that open stores by their URLs.

use std::sync::Arc;

use async_trait::async_trait;
use zarrd_store::{BoxError, OpenOptions, SnapshotStore, StoreKind, StoreUrl};

use crate::{
    options::Options,
    store::WebStore,
    url::{HttpUrl, SCHEMES, Versions},
};

/// The kind of store in this crate.
pub const KIND: StoreKind = StoreKind {
    schemes: SCHEMES,
    forms: "http://HOST or https://HOST",
    parse: |text| Ok(Arc::new(text.parse::<HttpUrl>()?)),
};

#[async_trait]
impl StoreUrl for HttpUrl {
    /// Opens the keys below the URL. A server starts without a web server that is unreachable.
    async fn open(&self, options: &OpenOptions<'_>) -> Result<Arc<dyn SnapshotStore>, BoxError> {
        let store = WebStore::open_even_if_unreachable(self, Options::default()).await?;
        let guarantees = store.guarantees();
        let pieces = options.pieces.filter(|_| self.uncached_reason().is_none());
        let pieces = pieces.map(|pieces| pieces.of_store(self.base()));
        Ok(self.options.cached(store, guarantees, pieces))
    }

    /// Only strong entity tags say that the bytes are the same.
    fn uncached_reason(&self) -> Option<&'static str> {
        match self.versions() {
            Versions::ETag => None,
            Versions::LastModified => Some("its versions are weak: ?versions=last-modified makes them of times"),
            Versions::Constant => Some("its versions are weak: ?recheck=never takes whatever the server sends for one"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cached_if_versions_are_strong() {
        for (url, is_cached) in [
            ("http://h/", true),
            ("http://h/?recheck=0", true),
            ("http://h/?versions=last-modified", false),
            ("http://h/?recheck=never", false),
        ] {
            assert_eq!((KIND.parse)(url).unwrap().uncached_reason().is_none(), is_cached, "{url}");
        }
    }
}
