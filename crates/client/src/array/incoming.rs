//! Elements on their way.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{Stream, StreamExt, stream, stream::BoxStream};

use super::{ArrayError, Description};
use crate::{
    answer::Answer,
    failure::{Failure, Knowledge, TransportError},
};

/// An answer whose head has come.
pub(super) struct Incoming {
    pub(super) description: Description,
    answer: Answer,
    received: u64,
}

/// Elements that come piece by piece, in C order, every word little-endian.
pub struct ElementStream {
    description: Description,
    pieces: BoxStream<'static, Result<Bytes, ArrayError>>,
}

impl Incoming {
    pub(super) fn new(description: Description, answer: Answer) -> Self {
        Self { description, answer, received: 0 }
    }

    /// The next bytes, or `None` at the end.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, Failure<ArrayError>> {
        let expected = self.description.bytes;
        let source = match (self.answer.piece().await, expected) {
            (Ok(Some(piece)), _) => {
                self.received = self.received.saturating_add(piece.len() as u64);
                return Ok(Some(piece));
            }
            (Ok(None), Some(end)) if self.received != end => TransportError::Short { at: self.received, end },
            (Ok(None), _) => return Ok(None),
            (Err(source), _) => source,
        };
        let knowledge = match source {
            // There is no time left to ask again.
            TransportError::Total(_) => Knowledge::Answered,
            _ => Knowledge::Unknown,
        };
        let error = ArrayError::Broken { received: self.received, expected, source };
        Err(Failure { error, knowledge, retry_after: None })
    }

    pub(super) fn into_stream(self) -> ElementStream {
        let description = self.description.clone();
        let pieces = stream::try_unfold(self, |mut incoming| async move {
            let piece = incoming.piece().await.map_err(|failure| failure.error)?;
            Ok(piece.map(|piece| (piece, incoming)))
        });
        ElementStream { description, pieces: pieces.boxed() }
    }
}

impl ElementStream {
    /// What the elements are.
    pub fn description(&self) -> &Description {
        &self.description
    }
}

impl Stream for ElementStream {
    type Item = Result<Bytes, ArrayError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.pieces.poll_next_unpin(context)
    }
}

impl fmt::Debug for ElementStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElementStream").field("description", &self.description).finish_non_exhaustive()
    }
}
