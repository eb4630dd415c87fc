//! Values going out.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use ::store::{ByteStream, StoreError, Value};
use axum::body::Body;
use bytes::Bytes;
use futures::TryStreamExt;
use http_body::{Frame, SizeHint};

/// The body with the bytes of a value.
///
/// The first piece is read before there is a body, so that what fails at once can still become an answer of its own;
/// a small value is that piece, and leaves in one write with the head.
pub(crate) async fn value_body(value: Value) -> Result<Body, StoreError> {
    let Value { range, mut stream, .. } = value;
    let length = range.end.saturating_sub(range.start);
    let first = stream.try_next().await?;
    match first {
        Some(first) if first.len() as u64 != length => Ok(Body::new(ValueBody { first: Some(first), stream, length })),
        Some(all) => Ok(Body::from(all)),
        None => Ok(Body::empty()),
    }
}

struct ValueBody {
    first: Option<Bytes>,
    stream: ByteStream,
    /// How many bytes are still to come.
    length: u64,
}

impl http_body::Body for ValueBody {
    type Data = Bytes;
    type Error = StoreError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StoreError>>> {
        let next = match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(first))),
            None => self.stream.as_mut().poll_next(context),
        };
        next.map_ok(|piece| {
            self.length = self.length.saturating_sub(piece.len() as u64);
            Frame::data(piece)
        })
    }

    fn is_end_stream(&self) -> bool {
        self.length == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}
