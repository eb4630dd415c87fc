//! Reading a range of a value, piece by piece.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use bytes::Bytes;
use futures::TryStreamExt;
use tokio::task::JoinHandle;

use super::{
    PIECE_LEN, StorePieces,
    claims::{Claim, Claims, Fetched},
    request::{Request, Value, part_of},
};
use crate::{ByteRange, ByteStream, ReadableStore, StoreError};

/// The number of pieces that are fetched ahead of their reader.
const AHEAD: usize = 8;

/// The maximum number of pieces in one request.
const JOINED: u64 = 256;

/// Reads a range of a value: pieces that are cached, pieces that another reader fetches, and those that it fetches itself
/// for all.
pub(super) struct Reader<S> {
    store: Arc<S>,
    cached: StorePieces,
    claims: Claims,
    value: Value,
    /// The range that has not been read.
    range: Range<u64>,
    /// The pieces that are being fetched for it, from the next one on.
    ahead: VecDeque<Arc<Fetched>>,
    /// The task that fetches them, and returns what is left of its request.
    fetching: Option<JoinHandle<Option<Request>>>,
    /// The rest of the range, if it is read past the cache.
    direct: Option<ByteStream>,
}

impl<S: ReadableStore> Reader<S> {
    /// A reader of a range of a value.
    pub(super) fn new(store: &Arc<S>, cached: &StorePieces, claims: &Claims, value: Value, range: Range<u64>) -> Self {
        Self {
            store: Arc::clone(store),
            cached: cached.clone(),
            claims: claims.clone(),
            value,
            range,
            ahead: VecDeque::new(),
            fetching: None,
            direct: None,
        }
    }

    /// Returns the next bytes; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, StoreError> {
        loop {
            if self.range.is_empty() {
                return Ok(None);
            }
            if let Some(direct) = &mut self.direct {
                let bytes = direct.try_next().await?;
                return Ok(bytes.map(|bytes| self.take(bytes)));
            }
            let index = self.range.start / PIECE_LEN;
            match self.piece(index).await? {
                Some(piece) => {
                    let bytes = part_of(piece, index, &self.range);
                    return Ok(Some(self.take(bytes)));
                }
                None => {
                    let range = self.range.clone();
                    self.direct = Some(self.ask(range).await?);
                }
            }
        }
    }

    /// Reads the pieces of a request that is running, which are all of the range. Without memory for a piece, it is read
    /// past the cache.
    pub(super) fn begin(&mut self, pieces: Range<u64>, stream: ByteStream) {
        let claim = self.claim(pieces.clone());
        if claim.pieces().is_empty() {
            self.direct = Some(stream);
        } else {
            self.fetch(claim, Request::new(pieces, stream));
        }
    }

    fn take(&mut self, bytes: Bytes) -> Bytes {
        self.range.start = self.range.start.saturating_add(bytes.len() as u64);
        bytes
    }

    /// Returns the next piece; `None` if it has to be read past the cache.
    async fn piece(&mut self, index: u64) -> Result<Option<Bytes>, StoreError> {
        if let Some(fetched) = self.ahead.pop_front() {
            return Ok(self.wait(&fetched).await);
        }
        loop {
            if let Some(fetched) = self.find(index) {
                // If another reader fails, this one asks for itself.
                if let Some(bytes) = fetched.wait().await {
                    return Ok(Some(bytes));
                }
            }
            if let Some(bytes) = self.cached(index).await {
                return Ok(Some(bytes));
            }
            let rest = self.rest(index).await;
            let pieces = rest.as_ref().map_or_else(|| self.missing(index), |rest| rest.pieces.clone());
            let claim = self.claim(pieces.clone());
            if claim.pieces().is_empty() {
                match self.find(index) {
                    Some(_) => continue,
                    None => return Ok(None),
                }
            }
            // Another reader may have fetched it since.
            if let Some(bytes) = self.cached(index).await {
                return Ok(Some(bytes));
            }
            let request = match rest {
                Some(rest) => rest,
                None => {
                    let bytes = self.value.bytes_of(&pieces);
                    Request::new(pieces, self.ask(bytes).await?)
                }
            };
            self.fetch(claim, request);
            let Some(fetched) = self.ahead.pop_front() else { return Ok(None) };
            return Ok(self.wait(&fetched).await);
        }
    }

    fn find(&self, index: u64) -> Option<Arc<Fetched>> {
        self.claims.find(&self.value.key, index, self.value.version)
    }

    /// Waits for a piece that is being fetched for this reader.
    async fn wait(&mut self, fetched: &Fetched) -> Option<Bytes> {
        let bytes = fetched.wait().await;
        if bytes.is_none() {
            self.ahead.clear();
        }
        bytes
    }

    /// The piece, if it is cached.
    async fn cached(&mut self, index: u64) -> Option<Bytes> {
        let id = self.cached.id(&self.value.key, self.value.version, index);
        let cache = &self.cached.pieces.cache;
        if !cache.may_contain(&id) {
            return None;
        }
        let bytes = self.value.bytes_of(&(index..index.saturating_add(1)));
        let len = bytes.end.saturating_sub(bytes.start);
        cache.get(&id).await.filter(|piece| piece.len() as u64 == len)
    }

    /// The rest of this reader's last request, if it begins with this piece.
    async fn rest(&mut self, index: u64) -> Option<Request> {
        let rest = self.fetching.take()?.await.ok().flatten()?;
        (rest.pieces.start == index).then_some(rest)
    }

    /// The pieces from this one on that are neither cached nor being fetched.
    fn missing(&self, index: u64) -> Range<u64> {
        let Value { key, version, .. } = &self.value;
        let end = Value::pieces_of(&self.range).end.min(index.saturating_add(JOINED));
        let is_missing = |next: &u64| {
            let id = self.cached.id(key, *version, *next);
            !self.claims.contain(key, *next) && !self.cached.pieces.cache.may_contain(&id)
        };
        let next = index.saturating_add(1);
        let others = (next..end).take_while(is_missing).count() as u64;
        index..next.saturating_add(others)
    }

    /// Claims the first pieces, as far as there is memory for them.
    fn claim(&self, pieces: Range<u64>) -> Claim {
        let memory = &self.cached.pieces.memory;
        let permits = (0..AHEAD).map_while(|_| Arc::clone(memory).try_acquire_owned().ok());
        self.claims.claim(&self.value.key, self.value.version, pieces, permits)
    }

    /// Fetches the pieces of a claim, at a pace that does not depend on this reader.
    fn fetch(&mut self, claim: Claim, request: Request) {
        self.ahead = claim.pieces().iter().cloned().collect();
        let fetching = request.read(self.value.clone(), claim, self.cached.clone());
        self.fetching = Some(tokio::spawn(fetching));
    }

    /// Asks the store for bytes of the value.
    async fn ask(&mut self, bytes: Range<u64>) -> Result<ByteStream, StoreError> {
        let Value { key, version, size } = &self.value;
        let changed = || StoreError::Changed { key: key.clone() };
        let range = match bytes == (0..*size) {
            true => None,
            false => Some(ByteRange::bounded(bytes.start, bytes.end).map_err(|_| changed())?),
        };
        match self.store.get_if_match(key, range, *version).await {
            Ok(Some(found)) if found.meta.version == *version && found.range == bytes => Ok(found.stream),
            Ok(_) | Err(StoreError::RangeNotSatisfiable { .. }) => Err(changed()),
            Err(error) => Err(error),
        }
    }
}
