//! Response bodies with metrics and logging.

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;

use crate::{
    metrics::InFlightGuard,
    observed_body::{BodyObserver, ObservedBody},
    request_id::RequestId,
    request_log::LoggedError,
};

/// Counts the bytes of a body, and logs an error that ends it early.
struct ResponseObserver {
    id: RequestId,
    in_flight: InFlightGuard,
}

/// Returns a body that is counted and logged. It keeps its request in progress until dropped.
pub(crate) fn instrumented_body(body: Body, id: RequestId, in_flight: InFlightGuard) -> Body {
    ObservedBody::wrap(body, ResponseObserver { id, in_flight })
}

impl BodyObserver for ResponseObserver {
    fn on_frame(&mut self, frame: &Result<Frame<Bytes>, axum::Error>) {
        match frame {
            Ok(frame) => self.in_flight.record_sent(frame.data_ref().map_or(0, |data| data.len() as u64)),
            // The head is already sent, so the client only sees the connection close.
            Err(error) => {
                tracing::error!(request = %self.id, error = %LoggedError(error), "response ended early");
            }
        }
    }
}
