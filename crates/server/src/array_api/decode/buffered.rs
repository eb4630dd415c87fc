//! Bodies that are read into memory completely before decoding.

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use zarrd_array::Permit;
use zarrd_executor::Cost;
use zarrd_store::ByteStream;

use super::{DecodeContext, DecodeError};

/// The largest body, in bytes, that is read without a memory permit.
const UNRESERVED_LIMIT: u64 = 64 << 10;

/// The most memory, in bytes, that decoding such a body takes without a permit.
const UNRESERVED_ESTIMATE_LIMIT: u64 = 16 * UNRESERVED_LIMIT;

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
            if memory.is_none() && len > UNRESERVED_LIMIT {
                memory = Some(self.acquire_memory(needed(max_size)).await?);
            }
            match stream.try_next().await? {
                Some(data) => bytes.extend_from_slice(&data),
                None => break,
            }
        }
        let needed = needed(bytes.len() as u64);
        if memory.is_none() && needed > UNRESERVED_ESTIMATE_LIMIT {
            memory = Some(self.acquire_memory(needed).await?);
        }
        Ok(BufferedBody { bytes: bytes.freeze(), memory })
    }

    pub(super) async fn acquire_memory(&self, bytes: u64) -> Result<Permit, DecodeError> {
        self.claim.take(bytes).await.map_err(|error| DecodeError::Api(error.into()))
    }

    /// Runs a decoder where the executor decides.
    pub(super) async fn run_decoder<T: Send + 'static>(
        &self,
        cost: Cost,
        decoder: impl FnOnce() -> Result<T, DecodeError> + Send + 'static,
    ) -> Result<T, DecodeError> {
        self.arrays.run(cost, decoder).await.map_err(|error| DecodeError::Api(error.into()))?
    }
}
