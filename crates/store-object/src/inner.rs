//! The state that the clones of a store share, and requests with their retries.

use std::{fmt, sync::Arc, time::Duration};

use futures::TryFutureExt;
use object_store::{list::PaginatedListOptions, path::Path};
use tokio::{
    sync::{Mutex, OwnedSemaphorePermit, Semaphore},
    time::Instant,
};
use zarrd_store::{Key, StoreError};
use zarrd_store_remote::{Attempts, Requests, seconds};

use crate::{
    error::RequestError,
    failure::Failure,
    http::{MIN_UPLOAD_RATE, Purpose},
    location::{BucketUrl, Forbidden, Location},
    options::Options,
    provider::Bucket,
    validators::Validators,
    xml::{Listed, ListedObject},
};

/// The time for which a bucket that was seen is taken to exist.
const SEEN_FOR: Duration = Duration::from_secs(10);

/// The time in which a write has to be answered, without the time of sending it.
const UPLOAD_DEADLINE: Duration = Duration::from_secs(120);

/// The memory for values that are gathered before they are written, in MiB.
const CONDITIONAL_MEMORY: usize = 512;

/// The longest name of an object, in bytes.
const MAX_NAME_LEN: usize = 1024;

pub(crate) struct Inner {
    pub(crate) location: Location,
    pub(crate) forbidden: Forbidden,
    pub(crate) validators: Validators,
    pub(crate) bucket: Arc<dyn Bucket>,
    /// The time in which the outcome of a write has to become known.
    pub(crate) settle: Duration,
    requests: Requests,
    /// The memory for values that are gathered before they are written, in MiB.
    memory: Arc<Semaphore>,
    /// The last time at which the bucket was known to exist.
    seen: Mutex<Option<Instant>>,
}

impl Inner {
    pub(crate) fn new(url: BucketUrl, bucket: Arc<dyn Bucket>, options: Options) -> Self {
        let BucketUrl { location, forbidden, .. } = url;
        let name = options.name.clone().unwrap_or_else(|| location.to_string());
        Self {
            location,
            forbidden,
            validators: Validators::new(&name),
            bucket,
            settle: options.settle,
            requests: Requests::new(options.deadline, options.retries),
            memory: Arc::new(Semaphore::new(CONDITIONAL_MEMORY)),
            seen: Mutex::new(None),
        }
    }

    /// The name of the object of a key; `None` if no object can have it.
    pub(crate) fn path(&self, key: &Key) -> Option<Path> {
        let name = format!("{}{key}", self.location.prefix);
        if name.len() > MAX_NAME_LEN {
            return None;
        }
        Path::parse(name).ok()
    }

    pub(crate) fn error(&self, action: &'static str, below: &str, failure: Failure) -> StoreError {
        let error = RequestError { action, target: format!("{}{below}", self.location), failure };
        StoreError::from(error).at(below)
    }

    /// The error of a change of which nothing certain is known.
    pub(crate) fn unknown(&self, action: &'static str, key: &Key, failure: Failure) -> StoreError {
        let error = RequestError { action, target: format!("{}{key}", self.location), failure };
        StoreError::OutcomeUnknown { key: key.clone(), source: error.into() }
    }

    pub(crate) fn attempts(&self) -> Attempts {
        self.requests.attempts()
    }

    /// Makes a request, and repeats it after a failure that may pass.
    pub(crate) async fn request<T, F>(&self, request: impl Fn() -> F) -> Result<T, Failure>
    where
        F: Future<Output = object_store::Result<T>>,
    {
        self.requests.make(|| request().map_err(|error| Failure::of(&error))).await
    }

    /// Waits for this number of MiB of memory for a value that is gathered.
    pub(crate) async fn conditional_memory(&self, mib: u64) -> Option<OwnedSemaphorePermit> {
        let permits = u32::try_from(mib).unwrap_or(u32::MAX).min(CONDITIONAL_MEMORY as u32);
        // The semaphore is never closed.
        Arc::clone(&self.memory).acquire_many_owned(permits).await.ok()
    }

    /// Makes a request once that moves this number of bytes.
    pub(crate) async fn request_once<T>(
        &self,
        size: u64,
        request: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        // The time of sending is limited by the client; this includes the wait for a turn.
        let limit = UPLOAD_DEADLINE.saturating_add(Duration::from_secs(size / MIN_UPLOAD_RATE));
        self.requests.make_once(limit, request).await
    }

    /// A page of the names that begin with a prefix, as the service sends it.
    pub(crate) async fn list_page(&self, prefix: &str, options: &PaginatedListOptions) -> Result<Listed, Failure> {
        let prefix = Some(prefix).filter(|prefix| !prefix.is_empty());
        let request = || {
            let mut options = options.clone();
            options.extensions.insert(Purpose::Listing);
            self.bucket.list_paginated(prefix, options)
        };
        let answer = self.request(request).await?;
        self.mark_seen();
        if let Some(listed) = answer.result.extensions.get::<Arc<Listed>>() {
            return Ok(Listed::clone(listed));
        }
        let objects = answer.result.objects.into_iter().map(|object| ListedObject {
            name: object.location.into(),
            size: object.size,
            etag: object.e_tag,
            modified: seconds(object.last_modified.into()),
        });
        let prefixes = answer.result.common_prefixes.into_iter().map(|path| format!("{path}/"));
        Ok(Listed { objects: objects.collect(), prefixes: prefixes.collect(), next: answer.page_token })
    }

    /// Fails if the bucket does not exist or cannot be reached, unless it was seen a moment ago.
    pub(crate) async fn check_bucket(&self) -> Result<(), Failure> {
        let mut seen = self.seen.lock().await;
        if seen.is_some_and(|at| at.elapsed() < SEEN_FOR) {
            return Ok(());
        }
        self.probe().await?;
        *seen = Some(Instant::now());
        Ok(())
    }

    /// Lists one name; returns false if listing is forbidden and that counts as absence.
    pub(crate) async fn probe(&self) -> Result<bool, Failure> {
        let options = PaginatedListOptions { max_keys: Some(1), ..PaginatedListOptions::default() };
        match self.list_page(self.location.prefix.as_str(), &options).await {
            Ok(_) => Ok(true),
            Err(Failure::Refused(refusal)) if self.forbidden == Forbidden::Absent && refusal.is_access_denied() => {
                Ok(false)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Notes that the bucket exists.
    pub(crate) fn mark_seen(&self) {
        // The holder of the lock is about to find out.
        if let Ok(mut seen) = self.seen.try_lock() {
            *seen = Some(Instant::now());
        }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client has the credentials.
        f.debug_struct("Inner").field("location", &self.location).finish_non_exhaustive()
    }
}
