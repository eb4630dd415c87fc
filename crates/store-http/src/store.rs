//! [`WebStore`], and the store traits for it.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use zarrd_store::{
    ByteRange, DirPage, GetResult, Guarantees, Key, KeyPage, ListableStore, Listing, PageRequest, Prefix,
    ReadableStore, StoreError, ValueMeta, Version,
};

use crate::{error::OpenError, inner::Inner, options::Options, read, url::HttpUrl};

/// A read-only store over the files of a web server that other programs write. Clones share one store.
#[derive(Clone)]
pub struct WebStore(Arc<Inner>);

impl WebStore {
    /// Opens the keys below a URL. Fails if there is no server, or if it wants credentials.
    pub async fn open(url: &HttpUrl, options: Options) -> Result<Self, OpenError> {
        let inner = Inner::new(url, &options)?;
        inner.probe().await.map_err(|failure| inner.error("open", "", failure))?;
        Ok(Self(Arc::new(inner)))
    }

    /// The guarantees of the store.
    pub fn guarantees(&self) -> Guarantees {
        Guarantees { listing: Listing::None, ..Guarantees::READ_ONLY }
    }
}

impl fmt::Debug for WebStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebStore").field("url", &self.0.url.to_string()).finish_non_exhaustive()
    }
}

#[async_trait]
impl ReadableStore for WebStore {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        read::get(&self.0, key, range, None).await
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        read::head(&self.0, key).await
    }

    async fn get_if_match(
        &self,
        key: &Key,
        range: Option<ByteRange>,
        version: Version,
    ) -> Result<Option<GetResult>, StoreError> {
        read::get(&self.0, key, range, Some(version)).await
    }
}

/// The error of every listing.
const UNLISTED: StoreError = StoreError::Unsupported { what: "listings" };

#[async_trait]
impl ListableStore for WebStore {
    async fn list_prefix(&self, _prefix: &Prefix, _page: PageRequest) -> Result<KeyPage, StoreError> {
        Err(UNLISTED)
    }

    async fn list_dir(&self, _prefix: &Prefix, _page: PageRequest) -> Result<DirPage, StoreError> {
        Err(UNLISTED)
    }
}
