//! Bodies that are resumed where they broke.

use std::ops::Range;

use bytes::Bytes;
use futures::{
    StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use zarrd_store::{ByteStream, StoreError};

use crate::attempts::{Attempts, Failed};

/// A value that continues to break gets new attempts after this many bytes.
const PROGRESS: u64 = 1 << 20;

/// The bytes of an answer.
pub type Body<F> = BoxStream<'static, Result<Bytes, F>>;

/// A value whose body can be asked for again.
pub trait Resume: Send + Sync + 'static {
    /// The failure of a request.
    type Failure: Failed;

    /// Asks for the remaining bytes of the same value. Fails with [`StoreError::Changed`] if there is another one now.
    fn resume(&self, remaining: Range<u64>) -> BoxFuture<'_, Result<Body<Self::Failure>, StoreError>>;

    /// The attempts that begin when the body broke.
    fn attempts(&self) -> Attempts;

    /// The error of the read that failed so.
    fn error(&self, failure: Self::Failure) -> StoreError;
}

/// The bytes of a range of a value, exactly as many as the range has, of which a body has begun to arrive.
pub fn resumed<R: Resume>(value: R, range: Range<u64>, body: Body<R::Failure>) -> ByteStream {
    let reader = Reader { value, remaining: range, body: Some(body), attempts: None, progress: 0 };
    stream::try_unfold(reader, Reader::next).boxed()
}

/// A value that is being read.
struct Reader<R: Resume> {
    value: R,
    remaining: Range<u64>,
    /// The rest of the body; `None` after it broke.
    body: Option<Body<R::Failure>>,
    /// The attempts that are left since the body broke, if it did.
    attempts: Option<Attempts>,
    /// The number of bytes since then.
    progress: u64,
}

impl<R: Resume> Reader<R> {
    /// The next bytes. A body that breaks is resumed where it broke, with a request for the same value.
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, StoreError> {
        loop {
            if self.remaining.is_empty() {
                return Ok(None);
            }
            let Some(body) = &mut self.body else {
                self.body = Some(self.value.resume(self.remaining.clone()).await?);
                continue;
            };
            let failure = match body.next().await {
                Some(Ok(bytes)) if bytes.is_empty() => continue,
                Some(Ok(bytes)) => return self.take(&bytes).map(|()| Some((bytes, self))),
                Some(Err(failure)) => failure,
                None => R::Failure::short(self.remaining.end.saturating_sub(self.remaining.start)),
            };
            self.body = None;
            if self.progress >= PROGRESS {
                self.attempts = None;
            }
            self.progress = 0;
            let mut attempts = self.attempts.take().unwrap_or_else(|| self.value.attempts());
            attempts.wait(failure).await.map_err(|failure| self.value.error(failure))?;
            self.attempts = Some(attempts);
        }
    }

    fn take(&mut self, bytes: &Bytes) -> Result<(), StoreError> {
        let len = bytes.len() as u64;
        if len > self.remaining.end.saturating_sub(self.remaining.start) {
            return Err(self.value.error(R::Failure::long()));
        }
        self.remaining.start = self.remaining.start.saturating_add(len);
        self.progress = self.progress.saturating_add(len);
        Ok(())
    }
}
