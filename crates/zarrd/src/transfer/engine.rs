//! Transfers: listing, then copying.

use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use backon::{ExponentialBuilder, Retryable};
use futures::{StreamExt, TryStreamExt, stream};
use zarrd_store::{Key, Payload, Prefix, Version};

use super::{
    Sink, SkipReason, SmallContent, Source, SourceItem, TransferError,
    error::CopyError,
    upload_order::{UploadPhase, upload_phase},
};
use crate::{
    config::OnUnsupported,
    ui::{Progress, ProgressCounters, error_chain},
};

/// Maximum number of retries of a value while the other server is unreachable or busy.
const MAX_RETRIES: usize = 5;

/// Maximum number of times that nodes which change meanwhile are copied again.
const MAX_REPETITIONS: usize = 5;

/// The versions of metadata documents.
pub(crate) type Documents = BTreeMap<Key, Option<Version>>;

/// A transfer from a source to a sink.
pub(crate) struct Transfer<'a> {
    /// Source of the values.
    pub(crate) source: &'a dyn Source,
    /// Target of the values.
    pub(crate) sink: &'a dyn Sink,
    /// Number of values that are copied concurrently.
    pub(crate) jobs: NonZeroUsize,
    /// Reaction to names that cannot be transferred.
    pub(crate) on_unsupported: OnUnsupported,
    /// What becomes of values that the sink has.
    pub(crate) present: PresentValues,
    /// Display of the progress.
    pub(crate) progress: &'a Progress,
}

/// What a transfer does with values that its sink has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PresentValues {
    /// It sets them again.
    Replace,
    /// It takes those for transferred, except documents, that have the size of the source's value and were set after
    /// that was last changed.
    Keep,
}

impl Transfer<'_> {
    /// Copies all values. Names and values that cannot be transferred are reported: the former stop the transfer before
    /// it begins unless they are to be skipped, the latter do not prevent the copying of others.
    pub(crate) async fn run(self) -> Result<(), TransferError> {
        let documents = self.list_source().await?;
        self.copy(documents).await
    }

    /// Copies the values of a source that was listed. Nodes whose documents changed meanwhile are copied again.
    pub(crate) async fn copy(self, mut documents: Documents) -> Result<(), TransferError> {
        self.progress.start_processing();
        self.copy_where(|_| true).await?;
        for attempt in 0.. {
            let changed = self.changed_documents(&mut documents).await?;
            if changed.is_empty() {
                break;
            }
            if attempt == MAX_REPETITIONS {
                return Err(TransferError::Changing { keys: changed });
            }
            let nodes: Vec<Prefix> = changed.iter().map(Key::parent).collect();
            self.copy_where(|name| nodes.iter().any(|node| node.contains(name))).await?;
        }
        let counters = self.progress.counters();
        match counters.failed.load(Ordering::Relaxed) {
            0 => Ok(()),
            failed => Err(TransferError::Incomplete { failed, corrupt: counters.corrupt.load(Ordering::Relaxed) }),
        }
    }

    /// Copies the values with some names.
    async fn copy_where(&self, is_copied: impl Fn(&Key) -> bool) -> Result<(), TransferError> {
        let later = self.copy_data(is_copied).await?;
        for (_, names) in later {
            self.copy_all(stream::iter(names.into_iter().map(Ok))).await?;
        }
        Ok(())
    }

    /// Lists the source, for the totals and for names that cannot be transferred. Returns the versions of the documents
    /// of a source whose values may change.
    pub(crate) async fn list_source(&self) -> Result<Documents, TransferError> {
        let counters = self.progress.counters();
        let mut documents = Documents::new();
        let mut name_check = self.sink.name_check();
        let mut items = self.source.list();
        while let Some(item) = items.try_next().await.map_err(TransferError::List)? {
            match item {
                SourceItem::Value { name, size, version, .. } => match name_check(&name) {
                    Ok(()) => {
                        counters.expect(size);
                        if self.source.is_live() && upload_phase(&name) != UploadPhase::Data {
                            documents.insert(name, version);
                        }
                    }
                    Err(reason) => self.skip(&format!("{name:?}"), &reason),
                },
                SourceItem::Unsupported { name, reason } => self.skip(&name, &reason),
            }
        }
        match (self.on_unsupported, counters.skipped.load(Ordering::Relaxed)) {
            (OnUnsupported::Fail, count @ 1..) => Err(TransferError::UnsupportedNames { count }),
            _ => Ok(documents),
        }
    }

    /// The documents that are new or have another version than before, of a source whose values may change.
    async fn changed_documents(&self, documents: &mut Documents) -> Result<Vec<Key>, TransferError> {
        let mut changed = Vec::new();
        if !self.source.is_live() {
            return Ok(changed);
        }
        let mut items = self.source.list();
        while let Some(item) = items.try_next().await.map_err(TransferError::List)? {
            let SourceItem::Value { name, version, .. } = item else { continue };
            if upload_phase(&name) != UploadPhase::Data && documents.insert(name.clone(), version) != Some(version) {
                changed.push(name);
            }
        }
        Ok(changed)
    }

    fn skip(&self, name: &str, reason: &SkipReason) {
        self.progress.counters().skipped.fetch_add(1, Ordering::Relaxed);
        self.progress.message(&format!("cannot be transferred: {name}: {}", error_chain(reason)));
    }

    /// Copies the values of the first phase while they are listed, and returns the names of the later phases.
    async fn copy_data(
        &self,
        is_copied: impl Fn(&Key) -> bool,
    ) -> Result<BTreeMap<UploadPhase, Vec<Key>>, TransferError> {
        let mut later: BTreeMap<UploadPhase, Vec<Key>> = BTreeMap::new();
        let mut name_check = self.sink.name_check();
        let first = self.source.list_with_contents().map_err(TransferError::List).try_filter_map(|item| {
            let value = match item {
                SourceItem::Value { name, size, modified, content, .. }
                    if is_copied(&name) && name_check(&name).is_ok() =>
                {
                    match upload_phase(&name) {
                        UploadPhase::Data => Some((name, size, modified, content)),
                        phase => {
                            later.entry(phase).or_default().push(name);
                            None
                        }
                    }
                }
                _ => None,
            };
            std::future::ready(Ok(value))
        });
        let copy = |(name, size, modified, content)| async move {
            match self.is_present(&name, size, modified).await {
                true => Ok(()),
                false => self.copy_one(name, content).await,
            }
        };
        first.try_for_each_concurrent(self.jobs.get(), copy).await?;
        Ok(later)
    }

    /// True if the sink has a value that is taken for transferred, which is counted. If that cannot be found out, the value
    /// is transferred.
    async fn is_present(&self, name: &Key, size: u64, modified: Option<SystemTime>) -> bool {
        let (PresentValues::Keep, Some(modified)) = (self.present, modified) else { return false };
        let present = self.sink.present(name).await.ok().flatten();
        let is_same = present.is_some_and(|(present_size, set)| present_size == size && set > modified);
        if is_same {
            let counters = self.progress.counters();
            counters.present.fetch_add(1, Ordering::Relaxed);
            counters.bytes.fetch_add(size, Ordering::Relaxed);
        }
        is_same
    }

    async fn copy_all(
        &self,
        names: impl futures::Stream<Item = Result<Key, TransferError>>,
    ) -> Result<(), TransferError> {
        names.try_for_each_concurrent(self.jobs.get(), |name| self.copy_one(name, None)).await
    }

    /// Copies a value, which is opened unless its content came along with its name.
    async fn copy_one(&self, name: Key, content: Option<SmallContent>) -> Result<(), TransferError> {
        let delays = ExponentialBuilder::new().with_min_delay(Duration::from_millis(500)).with_max_times(MAX_RETRIES);
        let copied = (|| self.try_once(&name, content.as_ref()))
            .retry(delays)
            .when(CopyError::is_transient)
            .adjust(|error, delay| delay.map(|delay| error.retry_after().unwrap_or(delay).min(Duration::from_secs(60))))
            .await;
        let counters = self.progress.counters();
        match copied {
            Ok(CopyOutcome::Copied) => counters.keys.fetch_add(1, Ordering::Relaxed),
            Ok(CopyOutcome::Vanished) => counters.vanished.fetch_add(1, Ordering::Relaxed),
            Err(error) if error.concerns_one_key() => {
                self.progress.message(&format!("not transferred: {name:?}: {}", error_chain(&error)));
                counters.corrupt.fetch_add(u64::from(error.is_corruption()), Ordering::Relaxed);
                counters.failed.fetch_add(1, Ordering::Relaxed)
            }
            Err(error) => return Err(TransferError::Aborted { key: name, source: Box::new(error) }),
        };
        Ok(())
    }

    async fn try_once(&self, name: &Key, content: Option<&SmallContent>) -> Result<CopyOutcome, CopyError> {
        let content = match content {
            Some(SmallContent { bytes, attributes }) => {
                Some(Payload::from(bytes.clone()).with_attributes(attributes.clone()))
            }
            None => self.source.open(name).await.map_err(CopyError::Source)?,
        };
        let Some(content) = content else { return Ok(CopyOutcome::Vanished) };
        let mut attempt = Attempt::new(self.progress.counters());
        let put = self.sink.put(name, attempt.metered(content)).await;
        put.map(|()| attempt.succeed()).map_err(|error| match attempt.content_failed() {
            true => CopyError::Content(error),
            false => CopyError::Sink(error),
        })
    }
}

/// Result of copying a value.
enum CopyOutcome {
    Copied,
    /// The value was erased after it had been listed.
    Vanished,
}

/// One attempt to copy a value. Its bytes are counted as they are read, and subtracted if the attempt fails.
struct Attempt {
    meter: Arc<CopyMeter>,
    complete: bool,
}

/// Counts the bytes of a value, and records whether reading it failed.
struct CopyMeter {
    counters: Arc<ProgressCounters>,
    bytes: AtomicU64,
    failed: AtomicBool,
}

impl Attempt {
    fn new(counters: &Arc<ProgressCounters>) -> Self {
        let meter =
            CopyMeter { counters: Arc::clone(counters), bytes: AtomicU64::new(0), failed: AtomicBool::new(false) };
        Self { meter: Arc::new(meter), complete: false }
    }

    fn metered(&self, content: Payload) -> Payload {
        let meter = Arc::clone(&self.meter);
        let stream = content.stream.inspect(move |bytes| match bytes {
            Ok(bytes) => meter.count(bytes.len() as u64),
            Err(_) => meter.failed.store(true, Ordering::Relaxed),
        });
        Payload { stream: stream.boxed(), ..content }
    }

    fn content_failed(&self) -> bool {
        self.meter.failed.load(Ordering::Relaxed)
    }

    fn succeed(&mut self) -> CopyOutcome {
        self.complete = true;
        CopyOutcome::Copied
    }
}

impl CopyMeter {
    fn count(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.complete {
            self.meter.counters.bytes.fetch_sub(self.meter.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}
