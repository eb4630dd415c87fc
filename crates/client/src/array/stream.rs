//! Elements of a response.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{Stream, StreamExt, stream, stream::BoxStream};

use super::{ArrayError, Description, Elements, collect::Collect};
use crate::{
    error::TransportError,
    response::Response,
    retry::{Execution, FailedAttempt},
};

/// A response with elements, whose head has been received.
pub(super) struct ElementsResponse {
    pub(super) description: Description,
    response: Response,
    received: u64,
}

/// Elements as a stream of bytes, in C order and little-endian.
pub struct ElementStream {
    description: Description,
    bytes: BoxStream<'static, Result<Bytes, ArrayError>>,
}

impl ElementsResponse {
    pub(super) fn new(description: Description, response: Response) -> Self {
        Self { description, response, received: 0 }
    }

    /// Reads the next bytes; `None` at the end.
    pub(super) async fn next_bytes(&mut self) -> Result<Option<Bytes>, FailedAttempt<ArrayError>> {
        let expected = self.description.bytes;
        let source = match (self.response.next_bytes().await, expected) {
            (Ok(Some(bytes)), _) => {
                self.received = self.received.saturating_add(bytes.len() as u64);
                return Ok(Some(bytes));
            }
            (Ok(None), Some(end)) if self.received != end => TransportError::Truncated { at: self.received, end },
            (Ok(None), _) => return Ok(None),
            (Err(source), _) => source,
        };
        let execution = match source {
            // No time is left for a retry.
            TransportError::Total(_) => Execution::Final,
            _ => Execution::Unknown,
        };
        let error = ArrayError::Interrupted { received: self.received, expected, source };
        Err(FailedAttempt { error, execution, retry_after: None })
    }

    /// Reads all elements.
    pub(super) async fn collect<C: Collect>(mut self) -> Result<Elements<C::Content>, FailedAttempt<ArrayError>> {
        let mut collector = C::start(&self.description).map_err(FailedAttempt::terminal)?;
        while let Some(bytes) = self.next_bytes().await? {
            collector.push(&bytes).map_err(FailedAttempt::terminal)?;
        }
        let content = collector.finish().map_err(FailedAttempt::terminal)?;
        Ok(Elements { description: self.description, content })
    }

    pub(super) fn into_stream(self) -> ElementStream {
        let description = self.description.clone();
        let bytes = stream::try_unfold(self, |mut response| async move {
            let bytes = response.next_bytes().await.map_err(|failed| failed.error)?;
            Ok(bytes.map(|bytes| (bytes, response)))
        });
        ElementStream { description, bytes: bytes.boxed() }
    }
}

impl ElementStream {
    /// Shape, data type and other properties of the elements.
    pub fn description(&self) -> &Description {
        &self.description
    }
}

impl Stream for ElementStream {
    type Item = Result<Bytes, ArrayError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.bytes.poll_next_unpin(context)
    }
}

impl fmt::Debug for ElementStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElementStream").field("description", &self.description).finish_non_exhaustive()
    }
}
