//! [`BucketStore`], and the store traits for it.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use zarrd_store::{
    ByteRange, DirPage, GetResult, Guarantees, Key, KeyPage, ListableStore, Listing, PageRequest, Prefix,
    ReadableStore, StoreError, ValueMeta, Version,
};

use crate::{
    error::{OpenError, RequestError},
    inner::Inner,
    list,
    location::BucketUrl,
    options::Options,
    provider::{Bucket, connect},
    read,
};

/// The time in which a bucket has to answer if it need not be reachable.
const FIRST_DEADLINE: Duration = Duration::from_secs(10);

/// A read-only store over a prefix of a bucket that other programs write. Clones share one store.
#[derive(Clone)]
pub struct BucketStore {
    inner: Arc<Inner>,
    listing: Listing,
}

impl BucketStore {
    /// Opens a prefix of a bucket, with the credentials of the options' variables. Fails if the bucket does not exist
    /// or may not be listed.
    ///
    /// With `?absent=403`, what may not be read has no value, and a bucket that may not be listed opens without
    /// listings.
    pub async fn open(url: &BucketUrl, options: Options) -> Result<Self, OpenError> {
        let bucket = connect(&url.location, &options)?;
        Self::open_bucket(url, bucket, options).await
    }

    /// Opens a URL like [`open`](Self::open), with a client of its own in place of that of its service.
    pub async fn open_bucket(url: &BucketUrl, bucket: Arc<dyn Bucket>, options: Options) -> Result<Self, OpenError> {
        let target = url.location.to_string();
        let inner = Inner::new(url.clone(), bucket, options);
        let probed = inner.probe().await;
        let is_listed = probed.map_err(|failure| RequestError { action: "open", target, failure })?;
        let listing = if is_listed { Listing::Sorted } else { Listing::None };
        Ok(Self { inner: Arc::new(inner), listing })
    }

    /// Opens a prefix of a bucket like [`open`](Self::open), but also one that cannot be reached at the moment: then
    /// requests fail until it can be. Waits for at most ten seconds.
    ///
    /// Such a bucket is taken to have listings, which are an error later if it may not be listed.
    pub async fn open_even_if_unreachable(url: &BucketUrl, options: Options) -> Result<Self, OpenError> {
        let bucket = connect(&url.location, &options)?;
        let one_attempt = Options { retries: 0, deadline: options.deadline.min(FIRST_DEADLINE), ..options.clone() };
        match Self::open_bucket(url, bucket.clone(), one_attempt).await {
            Ok(Self { listing, .. }) => Ok(Self { inner: Inner::new(url.clone(), bucket, options).into(), listing }),
            Err(OpenError::Request(error)) if error.is_transient() => {
                tracing::warn!(%error, "a bucket cannot be reached; until it can be, its values and listings are errors");
                Ok(Self { inner: Inner::new(url.clone(), bucket, options).into(), listing: Listing::Sorted })
            }
            Err(error) => Err(error),
        }
    }

    /// The guarantees of the store.
    pub fn guarantees(&self) -> Guarantees {
        let listed_versions = self.listing == Listing::Sorted;
        Guarantees { listing: self.listing, listed_versions, ..Guarantees::READ_ONLY }
    }

    fn check_listings(&self) -> Result<(), StoreError> {
        match self.listing {
            Listing::Sorted => Ok(()),
            Listing::None => Err(StoreError::Unsupported { what: "listings of a bucket that may not be listed" }),
        }
    }
}

impl fmt::Debug for BucketStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketStore").field("location", &self.inner.location.to_string()).finish_non_exhaustive()
    }
}

#[async_trait]
impl ReadableStore for BucketStore {
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
impl ListableStore for BucketStore {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        self.check_listings()?;
        list::list_prefix(&self.inner, prefix, &page).await
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        self.check_listings()?;
        list::list_dir(&self.inner, prefix, &page).await
    }
}
