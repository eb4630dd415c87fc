//! Prefixes of stores as sources and sinks.

use std::{future::ready, num::NonZeroU64, time::SystemTime};

use async_trait::async_trait;
use futures::{Stream, StreamExt, TryStreamExt, stream::BoxStream};
use zarrd_client::{HttpSnapshot, HttpStore};
use zarrd_store::{
    BackendErrorKind, GetResult, Key, ListableStore, ListedValue, Payload, Precondition, Prefix, ReadableStore,
    StoreError, WriteableStore, list_all, list_all_values,
};

use super::{NameCheck, Sink, SinkError, SmallContent, Source, SourceError, SourceItem};

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

impl<S: ReadableStore + ListableStore> StoreSource<S> {
    /// The items of a listing.
    fn items<'s>(
        &'s self,
        listed: impl Stream<Item = Result<ListedValue, StoreError>> + Send + 's,
    ) -> BoxStream<'s, Result<SourceItem, SourceError>> {
        let (mut count, mut last) = (0_u64, None);
        // The listing of another server is not trusted to end.
        let listed = listed.map_err(SourceError::Store).and_then(move |listed| {
            count = count.saturating_add(1);
            let checked = check(self.max_keys, count, last.as_ref(), &listed.entry.key);
            last = Some(listed.entry.key.clone());
            ready(checked.map(|()| listed))
        });
        listed.map_ok(|listed| self.item(listed)).boxed()
    }

    fn item(&self, ListedValue { entry, value }: ListedValue) -> SourceItem {
        let name = self.prefix.strip(&entry.key).unwrap_or_default();
        match Key::parse(name) {
            Ok(name) => SourceItem::Value {
                name,
                size: entry.meta.size,
                version: Some(entry.meta.version),
                modified: Some(entry.meta.modified),
                content: value.map(|bytes| SmallContent { bytes, attributes: entry.meta.attributes }),
            },
            Err(error) => SourceItem::Unsupported { name: format!("{:?}", entry.key), reason: error.into() },
        }
    }
}

#[async_trait]
impl<S: ReadableStore + ListableStore> Source for StoreSource<S> {
    fn list(&self) -> BoxStream<'_, Result<SourceItem, SourceError>> {
        self.items(list_all(&self.store, &self.prefix).map_ok(|entry| ListedValue { entry, value: None }))
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

    fn list_with_contents(&self) -> BoxStream<'_, Result<SourceItem, SourceError>> {
        self.values.items(list_all_values(&self.values.store, &self.values.prefix))
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
