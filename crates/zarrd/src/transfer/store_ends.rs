//! A prefix of a store as a source and as a sink.

use std::{future::ready, num::NonZeroU64};

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use store::{Key, ListableStore, Payload, Precondition, Prefix, ReadableStore, WriteableStore, list_all};

use super::{Admission, Found, Sink, SinkError, Source, SourceError};

/// The keys that another server may list where nothing else is said.
pub(crate) const MOST_KEYS: NonZeroU64 = NonZeroU64::new(100_000_000).unwrap();

/// What lies below a prefix.
pub(crate) struct StoreSource<S> {
    /// The store.
    pub(crate) store: S,
    /// The prefix.
    pub(crate) prefix: Prefix,
    /// The most keys that it may list; `None` where it is known to come to an end.
    pub(crate) most: Option<NonZeroU64>,
}

/// A prefix below which values are set.
pub(crate) struct StoreSink<S> {
    /// The store.
    pub(crate) store: S,
    /// The prefix.
    pub(crate) prefix: Prefix,
}

#[async_trait]
impl<S: ReadableStore + ListableStore> Source for StoreSource<S> {
    fn list(&self) -> BoxStream<'_, Result<Found, SourceError>> {
        let (mut count, mut last) = (0_u64, None);
        let found = list_all(&self.store, &self.prefix).map_err(SourceError::Store);
        // Whoever made the listing may not want it to end.
        let found = found.and_then(move |entry| {
            count = count.saturating_add(1);
            let checked = check(self.most, count, last.as_ref(), &entry.key);
            last = Some(entry.key.clone());
            ready(checked.map(|()| entry))
        });
        let found = found.map_ok(|entry| {
            let name = self.prefix.strip(&entry.key).unwrap_or_default();
            match Key::parse(name) {
                Ok(name) => Found::Value { name, size: entry.meta.size },
                Err(error) => Found::Refused { name: format!("{:?}", entry.key), reason: error.into() },
            }
        });
        found.boxed()
    }

    async fn open(&self, name: &Key) -> Result<Option<Payload>, SourceError> {
        let key = self.prefix.join(name.as_str()).map_err(SourceError::Name)?;
        let value = self.store.get(&key, None).await?;
        Ok(value.map(|value| Payload { size: Some(value.meta.size), stream: value.stream }))
    }
}

/// Fails where a listing goes back, or on for too long.
fn check(most: Option<NonZeroU64>, count: u64, last: Option<&Key>, key: &Key) -> Result<(), SourceError> {
    if last.is_some_and(|last| last >= key) {
        return Err(SourceError::Unsorted { key: key.clone() });
    }
    match most {
        Some(most) if count > most.get() => Err(SourceError::TooManyKeys { most }),
        _ => Ok(()),
    }
}

#[async_trait]
impl<S: WriteableStore> Sink for StoreSink<S> {
    fn admission(&self) -> Admission<'_> {
        Box::new(|name| self.prefix.join(name.as_str()).map(drop).map_err(Into::into))
    }

    async fn put(&self, name: &Key, content: Payload) -> Result<(), SinkError> {
        let key = self.prefix.join(name.as_str()).map_err(SinkError::Name)?;
        self.store.set(&key, content, Precondition::none()).await?;
        Ok(())
    }
}
