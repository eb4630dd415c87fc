//! Streamed response bodies of known length.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::Body;
use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use http_body::{Frame, SizeHint};
use zarrd_store::{BoxError, GetResult, StoreError};

/// Returns the body for a value.
///
/// The first piece is read before the head is sent, so that an early error still becomes a response of its own. A small
/// value consists of that piece and is written together with the head.
pub(crate) async fn value_body(value: GetResult) -> Result<Body, StoreError> {
    let GetResult { range, mut stream, .. } = value;
    let length = range.end.saturating_sub(range.start);
    match stream.try_next().await? {
        Some(first) => Ok(sized_body(length, Some(first), stream)),
        None => Ok(Body::empty()),
    }
}

/// Returns a body without bytes for a response to `HEAD` whose length is not known: that of [`Body::empty`] would be
/// sent as 0.
pub(crate) fn empty_body_of_unknown_length() -> Body {
    Body::from_stream(futures::stream::empty::<Result<Bytes, std::convert::Infallible>>())
}

/// Returns a body of `length` bytes that starts with `first`, if given, and continues with `rest`.
pub(crate) fn sized_body<S, E>(length: u64, first: Option<Bytes>, rest: S) -> Body
where
    S: Stream<Item = Result<Bytes, E>> + Send + Unpin + 'static,
    E: Into<BoxError> + 'static,
{
    match first {
        Some(all) if all.len() as u64 == length => Body::from(all),
        first => Body::new(SizedBody { first, rest, length }),
    }
}

struct SizedBody<S> {
    first: Option<Bytes>,
    rest: S,
    /// The number of bytes left to send.
    length: u64,
}

impl<S, E> http_body::Body for SizedBody<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    type Data = Bytes;
    type Error = E;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        let next = match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(first))),
            None => Pin::new(&mut self.rest).poll_next(context),
        };
        next.map_ok(|data| {
            self.length = self.length.saturating_sub(data.len() as u64);
            Frame::data(data)
        })
    }

    fn is_end_stream(&self) -> bool {
        self.length == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}
