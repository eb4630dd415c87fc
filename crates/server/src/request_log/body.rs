//! Bodies whose bytes are counted for the access log.

use std::{
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::record::RequestRecord;
use crate::observed_body::BodyObserver;

/// The maximum size of a frame of a response, in bytes. The connection takes a whole frame at once, but sends it while the
/// client receives it, so with larger frames a response would end in the log before it is sent.
const MAX_FRAME_BYTES: usize = 128 << 10;

/// Counts the bytes of a request's body when they are read.
pub(super) struct ReceivedBytes(pub(super) Arc<RequestRecord>);

/// The progress of a response.
pub(super) trait ResponseProgress {
    /// Counts sent bytes.
    fn add_sent(&mut self, bytes: u64);

    /// Marks the response as complete.
    fn end(&mut self);
}

/// The body of a response. Its request ends when it is dropped.
pub(super) struct SentBody<R> {
    body: Body,
    /// The rest of a frame.
    rest: Bytes,
    /// The number of bytes left to send, if known.
    remaining: Option<u64>,
    request: R,
}

impl<R> SentBody<R> {
    /// A body of `length` bytes, if known.
    pub(super) fn new(body: Body, length: Option<u64>, request: R) -> Self {
        Self { body, rest: Bytes::new(), remaining: length, request }
    }

    /// Returns the beginning of a frame, and retains the rest.
    fn split(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        match frame.into_data() {
            Ok(mut data) => {
                self.rest = data.split_off(data.len().min(MAX_FRAME_BYTES));
                Frame::data(data)
            }
            Err(trailers) => trailers,
        }
    }
}

impl BodyObserver for ReceivedBytes {
    fn on_frame(&mut self, frame: &Result<Frame<Bytes>, axum::Error>) {
        if let Ok(frame) = frame {
            self.0.add_received(length(frame));
        }
    }
}

impl<R: ResponseProgress + Unpin> HttpBody for SentBody<R> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = match self.rest.is_empty() {
            true => ready!(Pin::new(&mut self.body).poll_frame(context)),
            false => Some(Ok(Frame::data(mem::take(&mut self.rest)))),
        };
        let frame = match frame {
            Some(Ok(frame)) => Some(Ok(self.split(frame))),
            frame => frame,
        };
        let sent = match &frame {
            Some(Ok(frame)) => length(frame),
            Some(Err(_)) => return Poll::Ready(frame),
            None => 0,
        };
        self.request.add_sent(sent);
        self.remaining = self.remaining.map(|remaining| remaining.saturating_sub(sent));
        // A body of known length is dropped after its last byte, without being polled for its end.
        if frame.is_none() || self.remaining == Some(0) || self.is_end_stream() {
            self.request.end();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, of_body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(of_body.lower().saturating_add(rest));
        if let Some(upper) = of_body.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}

fn length(frame: &Frame<Bytes>) -> u64 {
    frame.data_ref().map_or(0, |data| data.len() as u64)
}
