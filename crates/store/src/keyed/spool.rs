//! Values that are staged for a store which is written key by key.

use std::{fs::File, os::unix::fs::FileExt, sync::Arc};

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;

use crate::{ByteStream, Key, Payload, ReceivedValue, ReceivingStore, Reception, StoreError, UploadError};

/// The size up to which a staged value is in memory, in bytes.
const MAX_IN_MEMORY: usize = 16 << 10;

/// The size of the buffers in which values are written and read, in bytes.
const BUFFER: usize = 1 << 20;

/// The size of a file after which the next values go to another one, in bytes.
const SEGMENT: u64 = 256 << 20;

/// Temporary files without names, into which values are written one after the other. The space of a file is free again
/// once no value in it is needed.
#[derive(Clone, Debug, Default)]
pub(super) struct Spool(Arc<Mutex<Option<Segment>>>);

/// A file, and the end of what is reserved in it.
#[derive(Debug)]
struct Segment {
    file: Arc<File>,
    end: u64,
}

/// A staged value.
#[derive(Clone, Debug)]
pub(super) struct Spooled {
    spool: Spool,
    len: u64,
    content: Content,
}

/// The content of a staged value.
#[derive(Clone, Debug)]
enum Content {
    /// Pieces in memory and in temporary files.
    Pieces(Vec<Piece>),
    /// A value that the store has received.
    Received(Arc<dyn ReceivedValue>),
}

#[derive(Clone, Debug)]
enum Piece {
    Memory(Bytes),
    File { file: Arc<File>, start: u64, len: usize },
}

impl Spool {
    /// Receives a value for a key: where it will be, if it is large and the store can do so.
    pub(super) async fn receive(
        &self,
        store: Option<&dyn ReceivingStore>,
        key: &Key,
        payload: Payload,
    ) -> Result<Spooled, StoreError> {
        let store = store.filter(|_| payload.size.is_some_and(|size| size > MAX_IN_MEMORY as u64));
        let payload = match store {
            None => payload,
            Some(store) => match store.receive(key, payload).await? {
                Reception::Received(value) => {
                    let (spool, len) = (self.clone(), value.size());
                    return Ok(Spooled { spool, len, content: Content::Received(value) });
                }
                Reception::Full(payload) => payload,
            },
        };
        let (len, pieces) = self.receive_pieces(payload).await?;
        Ok(Spooled { spool: self.clone(), len, content: Content::Pieces(pieces) })
    }

    async fn receive_pieces(&self, payload: Payload) -> Result<(u64, Vec<Piece>), StoreError> {
        let Payload { size, mut stream, .. } = payload;
        let (mut len, mut pieces) = (0_u64, Vec::new());
        let mut buffer = BytesMut::new();
        while let Some(mut bytes) = stream.try_next().await? {
            len = len.saturating_add(bytes.len() as u64);
            if let Some(announced) = size.filter(|size| len > *size) {
                return Err(UploadError::LengthMismatch { announced, received: len }.into());
            }
            while buffer.is_empty() && bytes.len() >= BUFFER {
                pieces.push(self.write(bytes.split_to(BUFFER)).await?);
            }
            buffer.extend_from_slice(&bytes);
            if buffer.len() >= BUFFER {
                pieces.push(self.write(buffer.split().freeze()).await?);
            }
        }
        if let Some(announced) = size.filter(|size| len != *size) {
            return Err(UploadError::LengthMismatch { announced, received: len }.into());
        }
        match buffer.len() {
            0 => {}
            ..=MAX_IN_MEMORY if pieces.is_empty() => pieces.push(Piece::Memory(buffer.freeze())),
            _ => pieces.push(self.write(buffer.freeze()).await?),
        }
        Ok((len, pieces))
    }

    /// True if this spool has received a value.
    pub(super) fn owns(&self, value: &Spooled) -> bool {
        Arc::ptr_eq(&self.0, &value.spool.0)
    }

    async fn write(&self, bytes: Bytes) -> Result<Piece, StoreError> {
        let spool = self.clone();
        blocking(move || {
            let (file, start) = spool.reserve(bytes.len() as u64)?;
            let written = file.write_all_at(&bytes, start);
            written.map_err(|error| StoreError::io("write a staged value to the temporary directory", error))?;
            Ok(Piece::File { file, start, len: bytes.len() })
        })
        .await
    }

    /// Reserves a place in a file.
    fn reserve(&self, len: u64) -> Result<(Arc<File>, u64), StoreError> {
        let mut current = self.0.lock();
        let segment = match current.take_if(|segment| segment.end >= SEGMENT || Arc::strong_count(&segment.file) == 1) {
            None if current.is_some() => None,
            _ => {
                let file = tempfile::tempfile();
                let file = file.map_err(|error| StoreError::io("make a file in the temporary directory", error))?;
                Some(Segment { file: Arc::new(file), end: 0 })
            }
        };
        let segment = match segment {
            Some(segment) => current.insert(segment),
            None => current.as_mut().ok_or(StoreError::Closed)?,
        };
        let start = segment.end;
        segment.end = start.saturating_add(len);
        Ok((Arc::clone(&segment.file), start))
    }
}

impl Spooled {
    /// The number of bytes.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The value as a payload.
    pub(super) fn payload(&self) -> Payload {
        match &self.content {
            Content::Pieces(_) => Payload::sized(self.len, self.stream(0..self.len)),
            Content::Received(value) => Payload::of_received(Arc::clone(value)),
        }
    }

    /// The bytes of a range.
    pub(super) fn stream(&self, range: std::ops::Range<u64>) -> ByteStream {
        let pieces = match &self.content {
            Content::Pieces(pieces) => pieces,
            Content::Received(value) => return Arc::clone(value).read(range),
        };
        let (mut wanted, mut at) = (Vec::new(), 0_u64);
        for piece in pieces {
            let start = at;
            at = at.saturating_add(piece.len() as u64);
            let within = range.start.max(start)..range.end.min(at);
            if within.start < within.end {
                let offset = |at: u64| usize::try_from(at.saturating_sub(start)).unwrap_or(usize::MAX);
                wanted.push((piece.clone(), offset(within.start)..offset(within.end)));
            }
        }
        stream::iter(wanted).then(|(piece, range)| piece.read(range)).boxed()
    }
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::File { len, .. } => *len,
        }
    }

    async fn read(self, range: std::ops::Range<usize>) -> Result<Bytes, StoreError> {
        match self {
            Self::Memory(bytes) => Ok(bytes.slice(range.start.min(bytes.len())..range.end.min(bytes.len()))),
            Self::File { file, start, .. } => {
                blocking(move || {
                    let mut bytes = vec![0; range.end.saturating_sub(range.start)];
                    let read = file.read_exact_at(&mut bytes, start.saturating_add(range.start as u64));
                    read.map_err(|error| StoreError::io("read a staged value", error))?;
                    Ok(Bytes::from(bytes))
                })
                .await
            }
        }
    }
}

/// Runs work that waits for a disk.
#[allow(clippy::disallowed_methods, reason = "the executor is above this crate")]
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(StoreError::Closed))
}
