//! A store whose values are read through a cache of pieces.

use std::{fmt, ops::Range, sync::Arc};

use async_trait::async_trait;
use futures::{StreamExt, stream};

use super::{StorePieces, claims::Claims, reader::Reader, request::Value};
use crate::{
    ByteRange, CachedMeta, DirPage, GetResult, Key, KeyCount, KeyPage, KeyTurns, ListableStore, MetadataCache,
    PageRequest, Payload, Precondition, Prefix, PutResult, ReadableStore, ReceivingStore, Scan, ScanPage, StoreError,
    ValueMeta, Version, WriteableStore, cached_store::is_document,
};

/// The number of times that a read begins again because the value changed in between.
const TRIES: u32 = 4;

/// A store whose values are read through a cache of their pieces, which are of one version each.
///
/// - A piece is used for the version that the wrapped store has for the key: that of its
///   [metadata cache](ReadableStore::metadata_cache), as current as the store promises, or else of a
///   [`head`](ReadableStore::head). So a read that finds all of its pieces fetches metadata at most.
/// - A value that is read as a whole, and of whose key nothing is cached, takes one request as it does without the cache.
/// - Adjacent pieces that are missing are fetched in one request. Concurrent reads of a missing piece fetch it once.
/// - Metadata is that of the wrapped store. Documents, which it caches in memory, and absence are not cached here.
/// - Writes pass through: another value has another version, and no piece that is cached.
/// - A reader has at most eight pieces fetched ahead, and all readers of a cache 64 MiB. If there is no memory for a
///   piece, it is read past the cache.
///
/// The versions of the wrapped store have to be strong: values of one version have the same bytes.
pub struct PieceStore<S> {
    store: Arc<S>,
    cached: StorePieces,
    claims: Claims,
    /// The values that are being requested without knowing their version.
    turns: KeyTurns,
}

impl<S: ReadableStore + 'static> PieceStore<S> {
    /// Reads the values of a store through its pieces in a cache.
    pub fn new(store: S, cached: StorePieces) -> Self {
        Self { store: Arc::new(store), cached, claims: Claims::default(), turns: KeyTurns::default() }
    }

    fn cached_meta(&self, key: &Key) -> CachedMeta {
        self.store.metadata_cache().map_or(CachedMeta::Unknown, |cache| cache.cached(key))
    }

    async fn try_get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        match self.cached_meta(key) {
            CachedMeta::Known(Some(meta)) => return self.open(key, range, meta).await.map(Some),
            CachedMeta::Known(None) => return self.store.get(key, range).await,
            CachedMeta::Unknown => {}
        }
        if range.is_none() {
            // Concurrent reads of a value wait until the version is known.
            let _turn = self.turns.take(key).await;
            if self.cached_meta(key) == CachedMeta::Unknown && !self.is_any_cached(key) {
                return Ok(self.store.get(key, None).await?.map(|value| self.split(key, value)));
            }
        }
        match self.store.head(key).await? {
            Some(meta) => self.open(key, range, meta).await.map(Some),
            None => Ok(None),
        }
    }

    /// True if a piece of a value of the key is cached or being fetched, in whatever version.
    fn is_any_cached(&self, key: &Key) -> bool {
        let StorePieces { pieces, store } = &self.cached;
        self.claims.contain(key, 0) || pieces.cache.may_contain_key(*store, key)
    }

    /// Opens a range of a value of which this is the metadata.
    ///
    /// The first piece is read before this returns: so a value that has changed is an error here, and not in the stream.
    async fn open(&self, key: &Key, range: Option<ByteRange>, meta: ValueMeta) -> Result<GetResult, StoreError> {
        let range = match range.map(|range| range.resolve(meta.size)) {
            None => 0..meta.size,
            Some(Some(range)) => range,
            Some(None) => return Err(StoreError::RangeNotSatisfiable { meta }),
        };
        let mut reader = self.reader(key, &meta, range.clone());
        let first = reader.next().await?;
        let stream = stream::iter(first.map(Ok)).chain(rest(reader)).boxed();
        Ok(GetResult { meta, range, stream })
    }

    /// Caches the pieces of a value that is being read.
    fn split(&self, key: &Key, value: GetResult) -> GetResult {
        let GetResult { meta, range, stream } = value;
        if range != (0..meta.size) || range.is_empty() {
            return GetResult { meta, range, stream };
        }
        let mut reader = self.reader(key, &meta, range.clone());
        reader.begin(Value::pieces_of(&range), stream);
        GetResult { meta, range, stream: rest(reader).boxed() }
    }

    fn reader(&self, key: &Key, meta: &ValueMeta, range: Range<u64>) -> Reader<S> {
        let value = Value { key: key.clone(), version: meta.version, size: meta.size };
        Reader::new(&self.store, &self.cached, &self.claims, value, range)
    }
}

/// The bytes that a reader has not read.
fn rest<S: ReadableStore + 'static>(
    reader: Reader<S>,
) -> impl futures::Stream<Item = Result<bytes::Bytes, StoreError>> + Send {
    stream::try_unfold(reader, async |mut reader| Ok(reader.next().await?.map(|bytes| (bytes, reader))))
}

#[async_trait]
impl<S: ReadableStore + 'static> ReadableStore for PieceStore<S> {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        if !is_document(key) {
            for _ in 0..TRIES {
                match self.try_get(key, range).await {
                    Err(StoreError::Changed { .. }) => {}
                    result => return result,
                }
            }
        }
        self.store.get(key, range).await
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        self.store.head(key).await
    }

    async fn get_if_match(
        &self,
        key: &Key,
        range: Option<ByteRange>,
        version: Version,
    ) -> Result<Option<GetResult>, StoreError> {
        if is_document(key) {
            return self.store.get_if_match(key, range, version).await;
        }
        let meta = match self.cached_meta(key) {
            CachedMeta::Known(meta) => meta,
            CachedMeta::Unknown if range.is_none() && !self.is_any_cached(key) => {
                let found = self.store.get_if_match(key, None, version).await?;
                return Ok(found.map(|value| self.split(key, value)));
            }
            CachedMeta::Unknown => self.store.head(key).await?,
        };
        match meta.filter(|meta| meta.version == version) {
            Some(meta) => self.open(key, range, meta).await.map(Some),
            // The store notes that the value has changed.
            None => self.store.get_if_match(key, range, version).await,
        }
    }

    fn metadata_cache(&self) -> Option<&dyn MetadataCache> {
        self.store.metadata_cache()
    }
}

#[async_trait]
impl<S: ListableStore + Send + Sync> ListableStore for PieceStore<S> {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        self.store.list_prefix(prefix, page).await
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        self.store.list_dir(prefix, page).await
    }

    async fn scan(&self, scan: &Scan) -> Result<ScanPage, StoreError> {
        self.store.scan(scan).await
    }

    async fn list(&self, page: PageRequest) -> Result<KeyPage, StoreError> {
        self.store.list(page).await
    }
}

#[async_trait]
impl<S: WriteableStore + Send + Sync> WriteableStore for PieceStore<S> {
    async fn set(&self, key: &Key, payload: Payload, precondition: Precondition) -> Result<PutResult, StoreError> {
        self.store.set(key, payload, precondition).await
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        self.store.erase(key, precondition).await
    }

    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError> {
        self.store.erase_prefix(prefix).await
    }

    fn receiving(&self) -> Option<&dyn ReceivingStore> {
        self.store.receiving()
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        self.store.check_writable().await
    }
}

impl<S> fmt::Debug for PieceStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PieceStore").field("cached", &self.cached).finish_non_exhaustive()
    }
}
