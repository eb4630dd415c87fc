//! Bodies that are read whole.

use array::Permit;
use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use store::ByteStream;

use super::{DecodeContext, DecodeError};
use crate::blocking::run_blocking;

/// Bodies up to this size, and what is made of them, are taken without asking whether there is memory, and parsed where they are.
pub(super) const INLINE_DECODE_LIMIT: u64 = 64 << 10;

/// A body, and the memory that it and its elements may take.
pub(super) struct BufferedBody {
    pub(super) bytes: Bytes,
    pub(super) memory: Option<Permit>,
}

impl DecodeContext {
    /// Reads what is left of a body, of which `begun` came already and `size` is all, where that is known. `needed` says how much memory a body of a size takes.
    pub(super) async fn buffer(
        &self,
        received: BytesMut,
        mut stream: ByteStream,
        size: Option<u64>,
        needed: impl Fn(u64) -> u64,
    ) -> Result<BufferedBody, DecodeError> {
        let max_size = size.unwrap_or(self.text_limit);
        let (mut bytes, mut memory) = (received, None);
        loop {
            let len = bytes.len() as u64;
            if len.max(size.unwrap_or(0)) > self.text_limit {
                return Err(DecodeError::TooLarge { limit: self.text_limit });
            }
            if memory.is_none() && len > INLINE_DECODE_LIMIT {
                memory = Some(self.acquire_memory(needed(max_size)).await?);
            }
            match stream.try_next().await? {
                Some(data) => bytes.extend_from_slice(&data),
                None => break,
            }
        }
        let needed = needed(bytes.len() as u64);
        if memory.is_none() && needed > INLINE_DECODE_LIMIT.saturating_mul(16) {
            memory = Some(self.acquire_memory(needed).await?);
        }
        Ok(BufferedBody { bytes: bytes.freeze(), memory })
    }

    async fn acquire_memory(&self, bytes: u64) -> Result<Permit, DecodeError> {
        self.claim.take(bytes).await.map_err(|error| DecodeError::Api(error.into()))
    }
}

/// Makes something of bytes of this length: where they are, or where they do not keep other requests waiting.
pub(super) async fn run_decoder<T: Send + 'static>(
    len: u64,
    decoder: impl FnOnce() -> Result<T, DecodeError> + Send + 'static,
) -> Result<T, DecodeError> {
    if len <= INLINE_DECODE_LIMIT {
        return decoder();
    }
    run_blocking(decoder).await.map_err(DecodeError::Api)?
}
