//! Detection of unread request bodies.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use axum::{body::Body, extract::Request, response::Response};
use bytes::Bytes;
use http::{HeaderValue, header::CONNECTION};
use http_body::{Body as HttpBody, Frame, SizeHint};

/// Tracks whether a request's body was read to its end.
///
/// A connection cannot be reused if part of a body is unread. The response has to say so, or the client would send its
/// next request into a closing connection.
pub(crate) struct BodyCompletion(Option<Arc<AtomicBool>>);

struct WatchedBody {
    body: Body,
    ended: Arc<AtomicBool>,
}

impl BodyCompletion {
    /// Wraps the body of a request, if it has one.
    pub(crate) fn watch(request: Request) -> (Request, Self) {
        if request.body().is_end_stream() {
            return (request, Self(None));
        }
        let ended = Arc::new(AtomicBool::new(false));
        let completion = Self(Some(Arc::clone(&ended)));
        (request.map(|body| Body::new(WatchedBody { body, ended })), completion)
    }

    /// Sets `Connection: close` if part of the body is unread.
    pub(crate) fn close_if_incomplete(&self, response: &mut Response) {
        if self.0.as_ref().is_some_and(|ended| !ended.load(Ordering::Acquire)) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.ended.store(true, Ordering::Release);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
