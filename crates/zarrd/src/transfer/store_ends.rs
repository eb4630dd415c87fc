//! A prefix of a store as a source and as a sink.

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use store::{Content, Key, ListableStore, Precondition, Prefix, ReadableStore, WriteableStore, walk};

use super::{Admission, Found, Sink, SinkError, Source, SourceError};

/// What lies below a prefix.
pub(crate) struct StoreSource<S> {
    /// The store.
    pub(crate) store: S,
    /// The prefix.
    pub(crate) prefix: Prefix,
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
        let found = walk(&self.store, &self.prefix).map_err(SourceError::Store);
        let found = found.map_ok(|entry| {
            let name = self.prefix.strip(&entry.key).unwrap_or_default();
            match Key::parse(name) {
                Ok(name) => Found::Value { name, size: entry.info.size },
                Err(error) => Found::Refused { name: format!("{:?}", entry.key), reason: error.into() },
            }
        });
        found.boxed()
    }

    async fn open(&self, name: &Key) -> Result<Option<Content>, SourceError> {
        let key = self.prefix.join(name.as_str()).map_err(SourceError::Name)?;
        let value = self.store.get(&key, None).await?;
        Ok(value.map(|value| Content { size: Some(value.info.size), stream: value.stream }))
    }
}

#[async_trait]
impl<S: WriteableStore> Sink for StoreSink<S> {
    fn admission(&self) -> Admission<'_> {
        Box::new(|name| self.prefix.join(name.as_str()).map(drop).map_err(Into::into))
    }

    async fn put(&self, name: &Key, content: Content) -> Result<(), SinkError> {
        let key = self.prefix.join(name.as_str()).map_err(SinkError::Name)?;
        self.store.set(&key, content, Precondition::none()).await?;
        Ok(())
    }
}
