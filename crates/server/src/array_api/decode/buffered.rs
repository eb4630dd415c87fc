//! Bodies that are read whole.

use array::Permit;
use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use store::ByteStream;

use super::{Bounds, IncomingError};
use crate::blocking::blocking;

/// Bodies up to this size, and what is made of them, are taken without asking whether there is memory, and parsed where they are.
pub(super) const SMALL: u64 = 64 << 10;

/// A body, and the memory that it and its elements may take.
pub(super) struct Whole {
    pub(super) bytes: Bytes,
    pub(super) memory: Option<Permit>,
}

impl Bounds {
    /// Reads what is left of a body, of which `begun` came already and `size` is all, where that is known. `needed` says how much memory a body of a size takes.
    pub(super) async fn whole(
        &self,
        begun: BytesMut,
        mut stream: ByteStream,
        size: Option<u64>,
        needed: impl Fn(u64) -> u64,
    ) -> Result<Whole, IncomingError> {
        let most = size.unwrap_or(self.text);
        let (mut bytes, mut memory) = (begun, None);
        loop {
            let len = bytes.len() as u64;
            if len.max(size.unwrap_or(0)) > self.text {
                return Err(IncomingError::TooLarge { limit: self.text });
            }
            if memory.is_none() && len > SMALL {
                memory = Some(self.take(needed(most)).await?);
            }
            match stream.try_next().await? {
                Some(piece) => bytes.extend_from_slice(&piece),
                None => break,
            }
        }
        let needed = needed(bytes.len() as u64);
        if memory.is_none() && needed > SMALL.saturating_mul(16) {
            memory = Some(self.take(needed).await?);
        }
        Ok(Whole { bytes: bytes.freeze(), memory })
    }

    async fn take(&self, bytes: u64) -> Result<Permit, IncomingError> {
        self.claim.take(bytes).await.map_err(|error| IncomingError::Refused(error.into()))
    }
}

/// Makes something of bytes of this length: where they are, or where they do not keep other requests waiting.
pub(super) async fn made<T: Send + 'static>(
    len: u64,
    make: impl FnOnce() -> Result<T, IncomingError> + Send + 'static,
) -> Result<T, IncomingError> {
    if len <= SMALL {
        return make();
    }
    blocking(make).await.map_err(IncomingError::Refused)?
}
