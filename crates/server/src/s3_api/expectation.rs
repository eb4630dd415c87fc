//! Requests whose body waits for `100 Continue`.
//!
//! A response without a `100 Continue` before it closes its connection: botocore takes the status of such a response for
//! that of the next request on the connection, whose head it then cannot read (`response_class` in its
//! `awsrequest.py`).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use axum::{extract::Request, response::Response};
use bytes::Bytes;
use http::{
    HeaderValue,
    header::{CONNECTION, EXPECT},
};
use http_body::Frame;

use crate::observed_body::{BodyObserver, ObservedBody};

/// An expectation of a request, if it has one.
pub(super) struct Expectation(Option<Arc<AtomicBool>>);

/// Records that a part of the body was received.
struct Received(Arc<AtomicBool>);

impl Expectation {
    /// The expectation of a request, and the request with a body that is observed.
    pub(super) fn of(request: Request) -> (Self, Request) {
        if !request.headers().contains_key(EXPECT) {
            return (Self(None), request);
        }
        let received = Arc::new(AtomicBool::new(false));
        let request = request.map(|body| ObservedBody::wrap(body, Received(received.clone())));
        (Self(Some(received)), request)
    }

    /// The response to the request.
    pub(super) fn answered_by(self, mut response: Response) -> Response {
        if self.0.is_some_and(|received| !received.load(Relaxed)) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

impl BodyObserver for Received {
    fn on_frame(&mut self, _frame: &Result<Frame<Bytes>, axum::Error>) {
        self.0.store(true, Relaxed);
    }
}
