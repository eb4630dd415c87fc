//! Response bodies with metrics and logging.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::{metrics::InFlightGuard, request_id::RequestId};

/// A body that counts its bytes and logs an error that ends it early. It keeps its request in progress until dropped.
pub(crate) struct InstrumentedBody {
    body: Body,
    id: RequestId,
    in_flight: InFlightGuard,
}

impl InstrumentedBody {
    pub(crate) fn new(body: Body, id: RequestId, in_flight: InFlightGuard) -> Self {
        Self { body, id, in_flight }
    }
}

impl http_body::Body for InstrumentedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                self.in_flight.record_sent(frame.data_ref().map_or(0, |data| data.len() as u64));
            }
            // The head is already sent, so the client only sees the connection close.
            Poll::Ready(Some(Err(error))) => {
                let error = error as &(dyn std::error::Error + 'static);
                tracing::error!(request = %self.id, error, "response ended early");
            }
            Poll::Ready(None) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
