//! Request bodies with the content of values.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use reqwest::{RequestBuilder, header::CONTENT_LENGTH};
use tokio::sync::{oneshot, watch};
use zarrd_store::{ByteStream, Payload, StoreError, UploadError};

use crate::{
    deadline::Deadline,
    error::{RequestError, TransportError},
    response::Response,
};

/// Streamed content is buffered up to this size, in bytes, so that its request can be retried.
const REPLAY_BYTES_LIMIT: usize = 1024 * 1024;

/// Content to be uploaded.
pub(crate) enum Upload {
    /// Content in memory, which can be sent any number of times.
    Replayable(Bytes),
    /// Streamed content, which can be sent once.
    Once(StreamedUpload),
}

/// Content that is produced while it is sent.
pub(crate) struct StreamedUpload {
    announced: Option<u64>,
    stream: ByteStream,
}

/// Errors of sending content.
pub(crate) enum SendError {
    /// The content failed, or does not have its announced length.
    Content(StoreError),
    /// The request failed.
    Request(RequestError),
}

/// A request body that reports its progress.
struct Body {
    stream: ByteStream,
    announced: Option<u64>,
    received: u64,
    /// The buffer that completes the announced length. It is held back until the content has ended, since the request
    /// would be complete with it.
    last: Option<Bytes>,
    progress: watch::Sender<Progress>,
    failure: Option<oneshot::Sender<StoreError>>,
}

/// The party that an upload is waiting for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The caller has to produce the next bytes.
    Caller,
    /// The server has to accept this number of bytes in total.
    Server(u64),
}

impl Upload {
    /// Buffers the beginning of the content: all of it if it is small or consists of one buffer.
    pub(crate) async fn new(content: Payload, deadline: Deadline) -> Result<Self, SendError> {
        let Payload { size: announced, mut stream, .. } = content;
        let (mut buffers, mut received): (Vec<Bytes>, usize) = (Vec::new(), 0);
        while buffers.len() < 2 || received <= REPLAY_BYTES_LIMIT {
            let next = deadline.wait_for_caller(stream.try_next()).await.map_err(RequestError::from)?;
            let Some(bytes) = next.map_err(SendError::Content)? else {
                check_length(announced, received as u64).map_err(|error| SendError::Content(error.into()))?;
                return Ok(Self::Replayable(concat(buffers)));
            };
            received = received.saturating_add(bytes.len());
            if !bytes.is_empty() {
                buffers.push(bytes);
            }
        }
        let stream = stream::iter(buffers.into_iter().map(Ok)).chain(stream).boxed();
        Ok(Self::Once(StreamedUpload { announced, stream }))
    }
}

impl StreamedUpload {
    /// Sends the content as the body of a request.
    pub(crate) async fn send(self, request: RequestBuilder, deadline: Deadline) -> Result<Response, SendError> {
        let (progress, observed) = watch::channel(Progress::Caller);
        let (failure, failed) = oneshot::channel();
        let request = match self.announced {
            Some(length) => request.header(CONTENT_LENGTH, length),
            None => request,
        };
        let body = Body {
            stream: self.stream,
            announced: self.announced,
            received: 0,
            last: None,
            progress,
            failure: Some(failure),
        };
        let response =
            wait_while_active(request.body(reqwest::Body::wrap_stream(body)).send(), observed, deadline).await;
        response_or_content_error(response, failed, deadline)
    }
}

/// Waits for the response. The idle timeout applies only while the server has to accept bytes.
async fn wait_while_active<F: Future>(
    response: F,
    mut progress: watch::Receiver<Progress>,
    deadline: Deadline,
) -> Result<F::Output, TransportError> {
    tokio::pin!(response);
    // The body, and with it the sender, is dropped when it was sent or is abandoned.
    while progress.has_changed().is_ok() {
        let waiting_for = *progress.borrow_and_update();
        let step = async {
            tokio::select! {
                biased;
                response = &mut response => Some(response),
                _ = progress.changed() => None,
            }
        };
        let finished = match waiting_for {
            Progress::Caller => deadline.wait_for_caller(step).await?,
            Progress::Server(_) => deadline.wait_for_server(step).await?,
        };
        if let Some(response) = finished {
            return Ok(response);
        }
    }
    deadline.wait_for_server(response).await
}

/// Returns the error of the content, if it failed, in place of the request's error, which is a consequence.
fn response_or_content_error(
    response: Result<reqwest::Result<reqwest::Response>, TransportError>,
    mut failed: oneshot::Receiver<StoreError>,
    deadline: Deadline,
) -> Result<Response, SendError> {
    if let Ok(error) = failed.try_recv() {
        return Err(SendError::Content(error));
    }
    Ok(Response::new(response.map_err(RequestError::from)?.map_err(RequestError::from)?, deadline))
}

impl Body {
    /// The next bytes to send.
    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, StoreError>>> {
        loop {
            let Some(bytes) = ready!(self.stream.as_mut().poll_next(context)).transpose()? else {
                check_length(self.announced, self.received)?;
                return Poll::Ready(self.last.take().map(Ok));
            };
            self.received = self.received.saturating_add(bytes.len() as u64);
            match self.announced {
                Some(announced) if self.received > announced => check_length(self.announced, self.received)?,
                Some(announced) if self.received == announced && !bytes.is_empty() => self.last = Some(bytes),
                _ if bytes.is_empty() => {}
                _ => return Poll::Ready(Some(Ok(bytes))),
            }
        }
    }
}

impl Stream for Body {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.failure.is_none() {
            return Poll::Ready(None);
        }
        let next = self.poll_bytes(context);
        let waiting_for = if next.is_pending() { Progress::Caller } else { Progress::Server(self.received) };
        self.progress.send_if_modified(|before| std::mem::replace(before, waiting_for) != waiting_for);
        Poll::Ready(ready!(next).map(|bytes| {
            bytes.map_err(|error| {
                if let Some(failure) = self.failure.take() {
                    // The receiver is gone if the operation was cancelled.
                    let _ = failure.send(error);
                }
                io::Error::other("the content of the value failed")
            })
        }))
    }
}

impl From<RequestError> for SendError {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}

impl From<SendError> for StoreError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Content(error) => error,
            SendError::Request(error) => error.into(),
        }
    }
}

fn check_length(announced: Option<u64>, received: u64) -> Result<(), UploadError> {
    match announced {
        Some(announced) if announced != received => Err(UploadError::LengthMismatch { announced, received }),
        _ => Ok(()),
    }
}

fn concat(buffers: Vec<Bytes>) -> Bytes {
    match <[Bytes; 1]>::try_from(buffers) {
        Ok([only]) => only,
        Err(buffers) => {
            let mut joined = BytesMut::with_capacity(buffers.iter().map(Bytes::len).sum());
            buffers.iter().for_each(|bytes| joined.extend_from_slice(bytes));
            joined.freeze()
        }
    }
}
