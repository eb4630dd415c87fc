//! Values that are received and not set yet.

use std::{any::Any, ops::Range, sync::Arc};

use bytes::Bytes;
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use zarrd_store::{ByteStream, Key, Payload, Precondition, PutResult, ReceivedValue, Reception, StoreError};

use super::{
    entry::settled,
    receive::{self, check_settable},
    spool::Spool,
};
use crate::inner::Inner;

/// The bytes that are read at a time.
const READ: u64 = 1 << 20;

/// A value in a temporary file in the directory of its key.
#[derive(Debug)]
pub(super) struct ReceivedFile {
    inner: Arc<Inner>,
    key: Key,
    size: u64,
    /// The file, with its place among those that are received; `None` while the value is being set, and once it was.
    spool: Mutex<Option<(Spool, OwnedSemaphorePermit)>>,
}

/// Receives a value for a key, unless there are too many.
pub(crate) async fn receive(inner: &Arc<Inner>, key: &Key, payload: Payload) -> Result<Reception, StoreError> {
    check_settable(inner, key)?;
    let Ok(permit) = Arc::clone(&inner.received).try_acquire_owned() else { return Ok(Reception::Full(payload)) };
    let received = receive::receive(inner, key, payload).await?;
    let (at, shared) = (key.clone(), Arc::clone(inner));
    let spool = inner.run(move |_| received.into_spool(&shared, &at)).await?;
    let (inner, key, size) = (Arc::clone(inner), key.clone(), spool.size());
    Ok(Reception::Received(Arc::new(ReceivedFile { inner, key, size, spool: Mutex::new(Some((spool, permit))) })))
}

/// The received value of a payload, if it was received for this key.
pub(super) fn received<'p>(inner: &Arc<Inner>, key: &Key, payload: &'p Payload) -> Option<&'p ReceivedFile> {
    let value: &dyn Any = &**payload.received.as_ref()?;
    value.downcast_ref().filter(|value: &&ReceivedFile| Arc::ptr_eq(&value.inner, inner) && value.key == *key)
}

impl ReceivedValue for ReceivedFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(self: Arc<Self>, range: Range<u64>) -> ByteStream {
        let end = range.end.min(self.size);
        stream::try_unfold((self, range.start), move |(value, start)| async move {
            if start >= end {
                return Ok(None);
            }
            let next = end.min(start.saturating_add(READ));
            let reader = Arc::clone(&value);
            let bytes = value.inner.run(move |_| reader.read_at(start..next)).await?;
            Ok(Some((bytes, (value, next))))
        })
        .boxed()
    }
}

impl ReceivedFile {
    /// Sets the key to the value. If that fails it can be set again, unless the file has its name by then.
    pub(super) async fn set(&self, precondition: Precondition) -> Result<PutResult, StoreError> {
        let settled = settled(&self.inner, &self.key, &precondition).await?;
        let Some((mut spool, permit)) = self.spool.lock().take() else { return Err(StoreError::InvalidStaged) };
        let set = move |_: &Inner| {
            let result = spool.finish(&precondition, settled);
            Ok::<_, StoreError>((spool, result))
        };
        let (spool, result) = self.inner.run(set).await?;
        if spool.is_open() {
            *self.spool.lock() = Some((spool, permit));
        }
        result
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        match &*self.spool.lock() {
            Some((spool, _)) => spool.read(range),
            None => Err(StoreError::InvalidStaged),
        }
    }
}
