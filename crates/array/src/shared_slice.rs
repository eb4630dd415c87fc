//! Slices of much larger parts of an array, each read once for all who request it at the same time, and cached.
//!
//! A slice is shared before the steps that follow a selection, such as conversions, which each request takes by itself.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{FutureExt, Stream, TryStreamExt, future::BoxFuture, stream};
use zarrd_codec::Elements;

use crate::{
    buffer_pool::with_permit,
    error::ArrayError,
    map::stable_hash,
    memory::claim::Permit,
    read::{array_read::ArrayRead, context::ReadContext},
    result_cache::{Compute, ResultKey},
};

/// The bytes from which on it is worth more to share the result of decoding them than to return it piece by piece.
const MIN_DECODED: u128 = 16 << 20;

/// The bytes that are decoded for each byte of the slice, at least.
const MIN_DECODED_PER_BYTE: u128 = 8;

/// The bytes of a piece that is returned at a time.
const PIECE: usize = 1 << 20;

/// A slice that is shared.
#[derive(Debug)]
pub(crate) struct SharedSlice {
    key: ResultKey,
    /// The size of the slice and of an element in bytes.
    len: usize,
    element_size: usize,
    source: Arc<ReadContext>,
    /// The read, until it starts for all.
    read: Option<ArrayRead>,
    /// The memory of the slice, while it is returned.
    memory: Option<Permit>,
}

impl SharedSlice {
    /// The slice of a read; the read if it is not shared.
    pub(crate) fn of(read: ArrayRead) -> Result<Self, Box<ArrayRead>> {
        match Self::identity(&read) {
            Some((key, len, element_size)) => {
                let source = read.source.clone();
                Ok(Self { key, len, element_size, source, read: Some(read), memory: None })
            }
            None => Err(Box::new(read)),
        }
    }

    /// The key of a slice that is shared, its size, and the size of its elements, in bytes.
    fn identity(read: &ArrayRead) -> Option<(ResultKey, usize, usize)> {
        let source = &read.source;
        let len = read.byte_len().filter(|&len| len > 0 && len <= source.context.results.max_size())?;
        let decoded = source.decoded_len;
        let is_small = decoded >= MIN_DECODED && u128::from(len).saturating_mul(MIN_DECODED_PER_BYTE) <= decoded;
        if !is_small || read.parts.is_some() || !read.prepared.is_decoded_for_response(&source.array) {
            return None;
        }
        let memory = read.prepared.memory.min_bytes(&source.context.options).saturating_add(len);
        if memory > source.context.max_memory() {
            return None;
        }
        // The hash of the input has the versions, the selection and the metadata, but not the place of the array.
        let computation = stable_hash(&("elements", read.path(), read.model().data_type.name()));
        let key = ResultKey { input: read.fingerprint()?, computation };
        Some((key, usize::try_from(len).ok()?, read.model().data_type.fixed_size()?))
    }

    /// The elements in C order. Nothing is read before the stream is polled.
    pub(crate) fn into_stream(self) -> impl Stream<Item = Result<Elements, ArrayError>> + Send + 'static {
        stream::once(self.pieces()).try_flatten()
    }

    async fn pieces(mut self) -> Result<impl Stream<Item = Result<Elements, ArrayError>> + Send + 'static, ArrayError> {
        let results = self.source.context.results.clone();
        let slice = results.get_or_compute(self.key, &mut self).await?;
        let slice = with_permit(slice, self.memory_of_slice().await?.map(Arc::new));
        let size = self.element_size.max(1);
        let piece = (PIECE / size).max(1).saturating_mul(size);
        let pieces = (0..slice.len()).step_by(piece).map(move |start| {
            let end = start.saturating_add(piece).min(slice.len());
            Ok(Elements::Fixed(slice.slice(start..end)))
        });
        Ok(stream::iter(pieces))
    }

    /// The memory of the slice: each request has its own, for it may return the slice slowly.
    async fn memory_of_slice(&mut self) -> Result<Option<Permit>, ArrayError> {
        if self.memory.is_some() {
            return Ok(self.memory.take());
        }
        let mut account = match self.read.take() {
            Some(read) => read.prepared.memory.account,
            None => self.source.context.account(),
        };
        let len = self.len as u64;
        account.reserve(len).await?;
        let mut permit = account.into_permit();
        permit.iter_mut().for_each(|permit| permit.shrink_to(len));
        Ok(permit)
    }
}

#[async_trait]
impl Compute for SharedSlice {
    async fn prepare(&mut self) -> Result<(), ArrayError> {
        let Some(read) = &mut self.read else { return Ok(()) };
        let (options, len) = (&self.source.context.options, self.len as u64);
        let memory = &mut read.prepared.memory;
        if memory.account.is_empty() {
            self.memory = Some(memory.reserve_with_extra(options, len).await?);
        } else {
            // Without it, the memory of the slice is taken when that of the read is free again.
            self.memory = memory.reserve_with_extra(options, len).await.ok();
        }
        Ok(())
    }

    fn start(&mut self) -> BoxFuture<'static, Result<Bytes, ArrayError>> {
        let (read, len) = (self.read.take(), self.len);
        async move {
            let read = read.ok_or(ArrayError::ShuttingDown)?;
            let misplaced = ArrayError::Misplaced { path: read.path().clone() };
            let mut slice = Vec::with_capacity(len);
            let mut pieces = std::pin::pin!(read.into_stream());
            while let Some(piece) = pieces.try_next().await? {
                match piece {
                    Elements::Fixed(bytes) if slice.len().saturating_add(bytes.len()) <= len => {
                        slice.extend_from_slice(&bytes);
                    }
                    _ => return Err(misplaced),
                }
            }
            if slice.len() == len { Ok(slice.into()) } else { Err(misplaced) }
        }
        .boxed()
    }
}
