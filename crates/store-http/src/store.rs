//! [`WebStore`], and the store traits for it.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::sync::OnceCell;
use zarrd_store::{
    ByteRange, DirPage, GetResult, Guarantees, Key, KeyPage, ListableStore, Listing, PageRequest, Prefix,
    ReadableStore, StoreError, ValueMeta, Version,
};

use crate::{error::OpenError, inner::Inner, listing, options::Options, read, url::HttpUrl};

/// The time in which a server has to answer if it need not be reachable.
const FIRST_DEADLINE: Duration = Duration::from_secs(10);

/// A read-only store over the files of a web server that other programs write. Clones share one store.
#[derive(Clone)]
pub struct WebStore {
    inner: Arc<Inner>,
    listing: Listing,
}

impl WebStore {
    /// Opens the keys below a URL. Fails if there is no server, or if it wants credentials. Another zarrd has listings.
    pub async fn open(url: &HttpUrl, options: Options) -> Result<Self, OpenError> {
        let inner = Inner::new(url, &options)?;
        let failed = |failure| inner.error("open", "", failure);
        inner.probe().await.map_err(failed)?;
        let zarrd = inner.zarrd.get_or_try_init(|| listing::recognize(&inner)).await.map_err(failed)?;
        let listing = if zarrd.is_some() { Listing::Sorted } else { Listing::None };
        Ok(Self { inner: Arc::new(inner), listing })
    }

    /// Opens the keys below a URL like [`open`](Self::open), but also those of a server that cannot be reached at the
    /// moment: then requests fail until it can be. Waits for at most ten seconds.
    ///
    /// Such a server is taken to have no listings, although those of another zarrd are read once it answers.
    pub async fn open_even_if_unreachable(url: &HttpUrl, options: Options) -> Result<Self, OpenError> {
        let one_attempt = Options { retries: 0, deadline: options.deadline.min(FIRST_DEADLINE), ..options.clone() };
        match Self::open(url, one_attempt).await {
            Ok(Self { inner: probed, listing }) => {
                let known = OnceCell::new_with(probed.zarrd.get().cloned());
                Ok(Self { inner: Arc::new(Inner::new(url, &options)?.with_zarrd(known)), listing })
            }
            Err(OpenError::Request(error)) if error.is_transient() => {
                tracing::warn!(%error, "a web server cannot be reached; until it can be, its values are errors");
                Ok(Self { inner: Arc::new(Inner::new(url, &options)?), listing: Listing::None })
            }
            Err(error) => Err(error),
        }
    }

    /// The guarantees of the store.
    pub fn guarantees(&self) -> Guarantees {
        Guarantees { listing: self.listing, ..Guarantees::READ_ONLY }
    }
}

impl fmt::Debug for WebStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebStore").field("url", &self.inner.url.to_string()).finish_non_exhaustive()
    }
}

#[async_trait]
impl ReadableStore for WebStore {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        read::get(&self.inner, key, range, None).await
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        read::head(&self.inner, key).await
    }

    async fn get_if_match(
        &self,
        key: &Key,
        range: Option<ByteRange>,
        version: Version,
    ) -> Result<Option<GetResult>, StoreError> {
        read::get(&self.inner, key, range, Some(version)).await
    }
}

#[async_trait]
impl ListableStore for WebStore {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        listing::list_prefix(&self.inner, prefix, &page).await
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        listing::list_dir(&self.inner, prefix, &page).await
    }
}
