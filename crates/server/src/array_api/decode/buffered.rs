//! Bodies that are read into memory completely before decoding.

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use zarrd_array::Permit;
use zarrd_store::ByteStream;

use super::{DecodeContext, DecodeError};

/// The largest body, in bytes, that is read without a memory permit and decoded on the async thread.
pub(super) const INLINE_DECODE_LIMIT: u64 = 64 << 10;

/// A complete body, with the permit for the memory that it and its elements take.
pub(super) struct BufferedBody {
    pub(super) bytes: Bytes,
    pub(super) memory: Option<Permit>,
}

impl DecodeContext {
    /// Reads the rest of a body, of which `received` has already arrived. `size` is the announced length of the full
    /// body, and `needed` estimates the memory needed for a body of a given length.
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

    pub(super) async fn acquire_memory(&self, bytes: u64) -> Result<Permit, DecodeError> {
        self.claim.take(bytes).await.map_err(|error| DecodeError::Api(error.into()))
    }

    /// Runs a decoder for `len` bytes: on the async thread if they are few, else with those of other requests in turn.
    pub(super) async fn run_decoder<T: Send + 'static>(
        &self,
        len: u64,
        decoder: impl FnOnce() -> Result<T, DecodeError> + Send + 'static,
    ) -> Result<T, DecodeError> {
        if len <= INLINE_DECODE_LIMIT {
            return decoder();
        }
        self.arrays.run_on_documents(len, decoder).await.map_err(|error| DecodeError::Api(error.into()))?
    }
}
