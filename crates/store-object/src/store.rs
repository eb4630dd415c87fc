//! [`BucketStore`], and the store traits for it.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::time::timeout;
use zarrd_store::{
    ByteRange, Conditions, DirPage, GetResult, Guarantees, Key, KeyCount, KeyPage, ListableStore, Listing, PageRequest,
    Payload, Precondition, Prefix, PutResult, ReadableStore, StoreError, ValueMeta, Version, WriteableStore, Writes,
};

use crate::{
    error::{OpenError, RequestError},
    inner::Inner,
    list,
    location::BucketUrl,
    options::Options,
    provider::{Bucket, connect},
    read,
    write::{self, Declared, PROBE, Probed, Writer},
};

/// The time in which a bucket has to answer if it need not be reachable.
const FIRST_DEADLINE: Duration = Duration::from_secs(10);

/// A store over a prefix of a bucket that other programs read and write. Clones share one store.
#[derive(Clone)]
pub struct BucketStore {
    inner: Arc<Inner>,
    listing: Listing,
    writer: Arc<Writer>,
    writes: Declared,
}

/// A bucket that answered when it was opened.
struct Opened {
    listing: Listing,
    probed: Option<Probed>,
}

impl BucketStore {
    /// Opens a prefix of a bucket, with the credentials of the options' variables. Fails if the bucket does not exist
    /// or may not be listed.
    ///
    /// With `?absent=403`, what may not be read has no value, and a bucket that may not be listed opens without
    /// listings.
    ///
    /// If the store is to write ([`Options::writes`]), the bucket is probed. One that may not be written, or does not check
    /// conditions, opens for reading: then [`Guarantees::read_only_reason`] has the reason.
    pub async fn open(url: &BucketUrl, options: Options) -> Result<Self, OpenError> {
        let bucket = connect(&url.location, &options)?;
        Self::open_bucket(url, bucket, options).await
    }

    /// Opens a URL like [`open`](Self::open), with a client of its own in place of that of its service.
    pub async fn open_bucket(url: &BucketUrl, bucket: Arc<dyn Bucket>, options: Options) -> Result<Self, OpenError> {
        let writer = Writer::new(options.writes);
        let inner = Inner::new(url.clone(), bucket, options);
        let opened = Opened::request(&inner, &writer).await?;
        Ok(Self::new(inner, writer, opened))
    }

    /// Opens a prefix of a bucket like [`open`](Self::open), but also one that cannot be reached at the moment: then
    /// requests fail until it can be. Waits for at most ten seconds.
    ///
    /// Such a bucket is taken to have listings, which are an error later if it may not be listed, and to accept writes,
    /// for which it is probed before the first one.
    pub async fn open_even_if_unreachable(url: &BucketUrl, options: Options) -> Result<Self, OpenError> {
        let bucket = connect(&url.location, &options)?;
        let one_attempt = Options { retries: 0, deadline: options.deadline.min(FIRST_DEADLINE), ..options.clone() };
        let writer = Writer::new(options.writes);
        let first = Inner::new(url.clone(), bucket.clone(), one_attempt);
        let opened = match timeout(FIRST_DEADLINE, Opened::request(&first, &writer)).await {
            Ok(Err(OpenError::Request(error))) if error.is_transient() => Err(error.to_string()),
            Ok(result) => Ok(result?),
            Err(_) => Err(format!("no answer arrived within {FIRST_DEADLINE:?}")),
        };
        let opened = opened.unwrap_or_else(|error| {
            tracing::warn!(bucket = %url.location, error, "a bucket cannot be reached; until it can be, its values and listings are errors");
            Opened { listing: Listing::Sorted, probed: None }
        });
        Ok(Self::new(Inner::new(url.clone(), bucket, options), writer, opened))
    }

    /// The guarantees of the store.
    pub fn guarantees(&self) -> Guarantees {
        let listed_versions = self.listing == Listing::Sorted;
        let read_only = Guarantees { listing: self.listing, listed_versions, ..Guarantees::READ_ONLY };
        match self.writes {
            Declared::Writes(conditions) => Guarantees { writes: Writes::Key, conditions, ..read_only },
            Declared::ReadOnly(read_only_reason) => Guarantees { read_only_reason, ..read_only },
        }
    }

    fn new(inner: Inner, writer: Writer, opened: Opened) -> Self {
        let writes = writer.declare(opened.probed);
        Self { inner: Arc::new(inner), listing: opened.listing, writer: Arc::new(writer), writes }
    }

    fn check_listings(&self) -> Result<(), StoreError> {
        match self.listing {
            Listing::Sorted => Ok(()),
            Listing::None => Err(StoreError::Unsupported { what: "listings of a bucket that may not be listed" }),
        }
    }

    /// The conditions of writes, which are not stronger than those that the store declares. Fails if there are none.
    async fn conditions(&self) -> Result<Conditions, StoreError> {
        let probed = self.writer.conditions(&self.inner).await?;
        match self.writes {
            Declared::Writes(declared) => Ok(declared.max(probed)),
            Declared::ReadOnly(reason) => Err(StoreError::Unsupported { what: reason.unwrap_or("changes") }),
        }
    }
}

impl Opened {
    /// Lists one name, and probes writes.
    async fn request(inner: &Inner, writer: &Writer) -> Result<Self, OpenError> {
        let failed = |action, failure| RequestError { action, target: inner.location.to_string(), failure };
        let is_listed = inner.probe().await.map_err(|failure| failed("open", failure))?;
        let listing = if is_listed { Listing::Sorted } else { Listing::None };
        let probed = writer.probe(inner).await.map_err(|failure| failed(PROBE, failure))?;
        Ok(Self { listing, probed })
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

#[async_trait]
impl WriteableStore for BucketStore {
    async fn set(&self, key: &Key, payload: Payload, precondition: Precondition) -> Result<PutResult, StoreError> {
        write::set(&self.inner, self.conditions().await?, key, payload, precondition).await
    }

    /// Erases the value of a key. The services' deletes have no conditions, so an erase with a precondition fails with
    /// [`StoreError::Unsupported`].
    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        self.conditions().await?;
        write::erase(&self.inner, key, &precondition).await
    }

    /// Erases all keys below a prefix, one after another: documents first, and then the rest. An erase that fails midway
    /// is completed by repeating it.
    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError> {
        self.conditions().await?;
        self.check_listings()?;
        write::erase_prefix(&self.inner, prefix).await
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        self.conditions().await?;
        self.inner.check_bucket().await.map_err(|failure| self.inner.error("reach", "", failure))
    }
}
