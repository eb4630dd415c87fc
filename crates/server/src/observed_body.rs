//! Bodies that are observed while they are sent or received.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

/// An observer of a body, owned by the body. By default it merely lives as long as the body.
pub(crate) trait BodyObserver: Send + Unpin + 'static {
    /// Observes the next frame or error.
    fn on_frame(&mut self, _frame: &Result<Frame<Bytes>, axum::Error>) {}

    /// Observes the end of the body, perhaps more than once.
    fn on_end(&mut self) {}
}

/// A body with an observer, which is dropped with it.
pub(crate) struct ObservedBody<O> {
    body: Body,
    observer: O,
}

impl<O: BodyObserver> ObservedBody<O> {
    /// Adds an observer to a body.
    pub(crate) fn wrap(body: Body, observer: O) -> Body {
        Body::new(Self { body, observer })
    }
}

impl<O: BodyObserver> HttpBody for ObservedBody<O> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let next = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(frame) = &next {
            self.observer.on_frame(frame);
        }
        if next.is_none() || self.body.is_end_stream() {
            self.observer.on_end();
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
