//! Detection of unread request bodies.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use axum::{extract::Request, response::Response};
use http::{HeaderValue, header::CONNECTION};
use http_body::Body as _;

use crate::observed_body::{BodyObserver, ObservedBody};

/// Tracks whether a request's body was read to its end.
///
/// A connection cannot be reused if part of a body is unread. The response has to say so, or the client would send its
/// next request into a closing connection.
pub(crate) struct BodyCompletion(Option<Arc<AtomicBool>>);

struct EndObserver(Arc<AtomicBool>);

impl BodyCompletion {
    /// Wraps the body of a request, if it has one.
    pub(crate) fn watch(request: Request) -> (Request, Self) {
        if request.body().is_end_stream() {
            return (request, Self(None));
        }
        let ended = Arc::new(AtomicBool::new(false));
        let completion = Self(Some(Arc::clone(&ended)));
        (request.map(|body| ObservedBody::wrap(body, EndObserver(ended))), completion)
    }

    /// Sets `Connection: close` if part of the body is unread.
    pub(crate) fn close_if_incomplete(&self, response: &mut Response) {
        if self.0.as_ref().is_some_and(|ended| !ended.load(Ordering::Acquire)) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

impl BodyObserver for EndObserver {
    fn on_end(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
