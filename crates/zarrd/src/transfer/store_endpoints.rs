//! Prefixes of stores as sources and sinks.

use std::{future::ready, num::NonZeroU64, time::SystemTime};

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use zarrd_client::{HttpSnapshot, HttpStore};
use zarrd_store::{
    BackendErrorKind, GetResult, Key, ListableStore, Payload, Precondition, Prefix, ReadableStore, StoreError,
    WriteableStore, list_all,
};

use super::{NameCheck, Sink, SinkError, Source, SourceError, SourceItem};

/// Default limit for the number of keys in the listing of another server.
pub(crate) const DEFAULT_MAX_KEYS: NonZeroU64 = NonZeroU64::new(100_000_000).unwrap();

/// The values below a prefix.
pub(crate) struct StoreSource<S> {
    /// The store.
    pub(crate) store: S,
    /// The prefix.
    pub(crate) prefix: Prefix,
    /// Maximum number of keys in the listing; `None` for a trusted store.
    pub(crate) max_keys: Option<NonZeroU64>,
}

/// Writes values below a prefix.
pub(crate) struct StoreSink<S> {
    /// The store.
    pub(crate) store: S,
    /// The prefix.
    pub(crate) prefix: Prefix,
}

#[async_trait]
impl<S: ReadableStore + ListableStore> Source for StoreSource<S> {
    fn list(&self) -> BoxStream<'_, Result<SourceItem, SourceError>> {
        let (mut count, mut last) = (0_u64, None);
        let entries = list_all(&self.store, &self.prefix).map_err(SourceError::Store);
        // The listing of another server is not trusted to end.
        let entries = entries.and_then(move |entry| {
            count = count.saturating_add(1);
            let checked = check(self.max_keys, count, last.as_ref(), &entry.key);
            last = Some(entry.key.clone());
            ready(checked.map(|()| entry))
        });
        let entries = entries.map_ok(|entry| {
            let name = self.prefix.strip(&entry.key).unwrap_or_default();
            match Key::parse(name) {
                Ok(name) => SourceItem::Value {
                    name,
                    size: entry.meta.size,
                    version: Some(entry.meta.version),
                    modified: Some(entry.meta.modified),
                },
                Err(error) => SourceItem::Unsupported { name: format!("{:?}", entry.key), reason: error.into() },
            }
        });
        entries.boxed()
    }

    async fn open(&self, name: &Key) -> Result<Option<Payload>, SourceError> {
        let key = self.prefix.join(name.as_str()).map_err(SourceError::Name)?;
        let value = self.store.get(&key, None).await?;
        Ok(value.map(GetResult::into_payload))
    }
}

/// The values below a prefix of another server as of one commit.
struct SnapshotSource {
    values: StoreSource<HttpSnapshot>,
}

#[async_trait]
impl Source for SnapshotSource {
    fn list(&self) -> BoxStream<'_, Result<SourceItem, SourceError>> {
        self.values.list()
    }

    async fn open(&self, name: &Key) -> Result<Option<Payload>, SourceError> {
        self.values.open(name).await
    }

    async fn close(&self) {
        // The server ends it by itself if this fails.
        let _ = self.values.store.end().await;
    }
}

/// The values below a prefix of another server without snapshots, which may change meanwhile.
struct LiveSource {
    values: StoreSource<HttpStore>,
}

#[async_trait]
impl Source for LiveSource {
    fn list(&self) -> BoxStream<'_, Result<SourceItem, SourceError>> {
        self.values.list()
    }

    async fn open(&self, name: &Key) -> Result<Option<Payload>, SourceError> {
        self.values.open(name).await
    }

    fn is_live(&self) -> bool {
        true
    }
}

/// A prefix of another server as the source of a transfer: a snapshot, unless it has none for the caller.
pub(crate) async fn server_source(
    store: HttpStore,
    prefix: Prefix,
    max_keys: NonZeroU64,
) -> Result<Box<dyn Source>, StoreError> {
    let max_keys = Some(max_keys);
    match store.snapshot_below(&prefix).await {
        Ok(snapshot) => Ok(Box::new(SnapshotSource { values: StoreSource { store: snapshot, prefix, max_keys } })),
        // An older server, a mount, or one whose snapshots take a token.
        Err(StoreError::Unsupported { .. } | StoreError::Backend { kind: BackendErrorKind::Unauthenticated, .. }) => {
            Ok(Box::new(LiveSource { values: StoreSource { store, prefix, max_keys } }))
        }
        Err(error) => Err(error),
    }
}

/// Checks that a listing is sorted and within its limit.
fn check(max_keys: Option<NonZeroU64>, count: u64, last: Option<&Key>, key: &Key) -> Result<(), SourceError> {
    if last.is_some_and(|last| last >= key) {
        return Err(SourceError::Unsorted { key: key.clone() });
    }
    match max_keys {
        Some(max_keys) if count > max_keys.get() => Err(SourceError::TooManyKeys { max_keys }),
        _ => Ok(()),
    }
}

#[async_trait]
impl<S: ReadableStore + WriteableStore> Sink for StoreSink<S> {
    fn name_check(&self) -> NameCheck<'_> {
        Box::new(|name| self.prefix.join(name.as_str()).map(drop).map_err(Into::into))
    }

    async fn present(&self, name: &Key) -> Result<Option<(u64, SystemTime)>, SinkError> {
        let key = self.prefix.join(name.as_str()).map_err(SinkError::Name)?;
        Ok(self.store.head(&key).await?.map(|meta| (meta.size, meta.modified)))
    }

    async fn put(&self, name: &Key, content: Payload) -> Result<(), SinkError> {
        let key = self.prefix.join(name.as_str()).map_err(SinkError::Name)?;
        self.store.set(&key, content, Precondition::none()).await?;
        Ok(())
    }
}
