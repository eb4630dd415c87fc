//! Values that are staged for a store which is written key by key.

use std::{fs::File, os::unix::fs::FileExt, sync::Arc};

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;

use crate::{ByteStream, Payload, StoreError, UploadError};

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
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
enum Piece {
    Memory(Bytes),
    File { file: Arc<File>, start: u64, len: usize },
}

impl Spool {
    /// Receives a value.
    pub(super) async fn receive(&self, payload: Payload) -> Result<Spooled, StoreError> {
        let Payload { size, mut stream, .. } = payload;
        let mut value = Spooled { spool: self.clone(), len: 0, pieces: Vec::new() };
        let mut buffer = BytesMut::new();
        while let Some(bytes) = stream.try_next().await? {
            value.len = value.len.saturating_add(bytes.len() as u64);
            if let Some(announced) = size.filter(|size| value.len > *size) {
                return Err(UploadError::LengthMismatch { announced, received: value.len }.into());
            }
            buffer.extend_from_slice(&bytes);
            if buffer.len() >= BUFFER {
                value.pieces.push(self.write(buffer.split().freeze()).await?);
            }
        }
        if let Some(announced) = size.filter(|size| value.len != *size) {
            return Err(UploadError::LengthMismatch { announced, received: value.len }.into());
        }
        match buffer.len() {
            0 => {}
            ..=MAX_IN_MEMORY if value.pieces.is_empty() => value.pieces.push(Piece::Memory(buffer.freeze())),
            _ => value.pieces.push(self.write(buffer.freeze()).await?),
        }
        Ok(value)
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
    /// The length in bytes.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The bytes of a range, which is within the value.
    pub(super) fn stream(&self, range: std::ops::Range<u64>) -> ByteStream {
        let mut at = 0_u64;
        let mut wanted = Vec::new();
        for piece in &self.pieces {
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

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(StoreError::Closed))
}
