//! Receiving the bytes of a value.

use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use zarrd_store::{Key, Payload, StoreError, UploadError};

use super::spool::Spool;
use crate::{inner::Inner, names::is_visible};

/// Bytes of a value are in memory up to this number before they are written: a small value is written in one step.
const MAX_BYTES: usize = 1 << 20;

/// Buffers of a value are in memory up to this number, since each takes memory of its own.
const MAX_BUFFERS: usize = 256;

/// A value that has arrived: a part of it in a temporary file, if it is large, and the rest.
pub(super) struct Received {
    spool: Option<Spool>,
    rest: Vec<Bytes>,
}

impl Received {
    /// The temporary file with all bytes. Blocks.
    pub(super) fn into_spool(self, inner: &Arc<Inner>, key: &Key) -> Result<Spool, StoreError> {
        append(inner, key, self.spool, &self.rest)
    }
}

/// Receives a value as long as it has the announced length.
pub(super) async fn receive(inner: &Arc<Inner>, key: &Key, payload: Payload) -> Result<Received, StoreError> {
    let Payload { size: announced, mut stream, .. } = payload;
    let (mut received, mut in_memory) = (0_u64, 0_usize);
    let mut value = Received { spool: None, rest: Vec::new() };
    while let Some(bytes) = stream.try_next().await? {
        received = received.saturating_add(bytes.len() as u64);
        if let Some(announced) = announced.filter(|announced| received > *announced) {
            return Err(UploadError::LengthMismatch { announced, received }.into());
        }
        if bytes.is_empty() {
            continue;
        }
        in_memory = in_memory.saturating_add(bytes.len());
        value.rest.push(bytes);
        if in_memory >= MAX_BYTES || value.rest.len() >= MAX_BUFFERS {
            let (at, Received { spool, rest }) = (key.clone(), value);
            let shared = Arc::clone(inner);
            let spool = inner.run(move |_| append(&shared, &at, spool, &rest)).await?;
            (value, in_memory) = (Received { spool: Some(spool), rest: Vec::new() }, 0);
        }
    }
    match announced.filter(|announced| *announced != received) {
        Some(announced) => Err(UploadError::LengthMismatch { announced, received }.into()),
        None => Ok(value),
    }
}

fn append(inner: &Arc<Inner>, key: &Key, spool: Option<Spool>, bytes: &[Bytes]) -> Result<Spool, StoreError> {
    let mut spool = match spool {
        Some(spool) => spool,
        None => Spool::create(inner, key)?,
    };
    match spool.write(bytes) {
        Ok(()) => Ok(spool),
        Err(error) => {
            // Before the answer, and not some time after it.
            spool.discard();
            Err(error)
        }
    }
}

/// Fails if the store does not write, or if a key cannot have a value.
pub(super) fn check_settable(inner: &Inner, key: &Key) -> Result<(), StoreError> {
    inner.writer()?;
    match is_visible(key.as_str()) && !key.is_hidden() {
        true => Ok(()),
        false => Err(StoreError::Unsupported { what: "keys that are names of temporary files" }),
    }
}
