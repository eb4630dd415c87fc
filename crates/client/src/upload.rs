//! The content of a value on its way up.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use reqwest::{RequestBuilder, header::CONTENT_LENGTH};
use store::{ByteStream, Payload, StoreError, UploadError};
use tokio::sync::{oneshot, watch};

use crate::{
    answer::Answer,
    failure::{Fault, TransportError},
    transport::Clock,
};

/// A content of pieces is gathered up to this size, so that its request can be made again.
const REPLAY_LIMIT: usize = 1024 * 1024;

/// A content, and whether it can be sent twice.
pub(crate) enum Upload {
    /// It is in memory.
    Replayable(Bytes),
    /// It can be sent once.
    Once(Streamed),
}

/// A content that comes as it is sent.
pub(crate) struct Streamed {
    announced: Option<u64>,
    stream: ByteStream,
}

/// Why a content was not sent, or its answer did not come.
pub(crate) enum Unsent {
    /// The content failed, or has another length than it should.
    Content(StoreError),
    /// The connection failed.
    Fault(Fault),
}

/// The body of a request, which tells how it fares.
struct Body {
    stream: ByteStream,
    announced: Option<u64>,
    received: u64,
    /// The piece that completes the announced length. It is not let go before the content has ended there, since the request
    /// would be complete with it.
    last: Option<Bytes>,
    progress: watch::Sender<Progress>,
    failed: Option<oneshot::Sender<StoreError>>,
}

/// Who is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The caller, for the next piece.
    Caller,
    /// The server, to take so many bytes in all.
    Server(u64),
}

impl Upload {
    /// Looks at the beginning of a content, and at all of one that is small or comes in one piece.
    pub(crate) async fn of(content: Payload, clock: Clock) -> Result<Self, Unsent> {
        let Payload { size: announced, mut stream } = content;
        let (mut pieces, mut received): (Vec<Bytes>, usize) = (Vec::new(), 0);
        while pieces.len() < 2 || received <= REPLAY_LIMIT {
            let next = clock.wait_for_caller(stream.try_next()).await.map_err(Fault::from)?;
            let Some(piece) = next.map_err(Unsent::Content)? else {
                check_length(announced, received as u64).map_err(|error| Unsent::Content(error.into()))?;
                return Ok(Self::Replayable(joined(pieces)));
            };
            received = received.saturating_add(piece.len());
            if !piece.is_empty() {
                pieces.push(piece);
            }
        }
        let stream = stream::iter(pieces.into_iter().map(Ok)).chain(stream).boxed();
        Ok(Self::Once(Streamed { announced, stream }))
    }
}

impl Streamed {
    /// Sends the content as the body of a request.
    pub(crate) async fn send(self, request: RequestBuilder, clock: Clock) -> Result<Answer, Unsent> {
        let (progress, fares) = watch::channel(Progress::Caller);
        let (failed, failure) = oneshot::channel();
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
            failed: Some(failed),
        };
        let answer = watched(request.body(reqwest::Body::wrap_stream(body)).send(), fares, clock).await;
        answer_or_cause(answer, failure, clock)
    }
}

/// Waits for an answer, as long as either side moves.
async fn watched<F: Future>(
    answer: F,
    mut fares: watch::Receiver<Progress>,
    clock: Clock,
) -> Result<F::Output, TransportError> {
    tokio::pin!(answer);
    // The body is dropped once it was sent, or will not be.
    while fares.has_changed().is_ok() {
        let waits_for = *fares.borrow_and_update();
        let step = async {
            tokio::select! {
                biased;
                answer = &mut answer => Some(answer),
                _ = fares.changed() => None,
            }
        };
        let done = match waits_for {
            Progress::Caller => clock.wait_for_caller(step).await?,
            Progress::Server(_) => clock.wait(step).await?,
        };
        if let Some(answer) = done {
            return Ok(answer);
        }
    }
    clock.wait(answer).await
}

/// Where the content failed, that is why the request did.
fn answer_or_cause(
    answer: Result<reqwest::Result<reqwest::Response>, TransportError>,
    mut failure: oneshot::Receiver<StoreError>,
    clock: Clock,
) -> Result<Answer, Unsent> {
    if let Ok(cause) = failure.try_recv() {
        return Err(Unsent::Content(cause));
    }
    Ok(Answer::new(answer.map_err(Fault::from)?.map_err(Fault::from)?, clock))
}

impl Body {
    /// The next piece to be sent.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, StoreError>>> {
        loop {
            let Some(piece) = ready!(self.stream.as_mut().poll_next(context)).transpose()? else {
                check_length(self.announced, self.received)?;
                return Poll::Ready(self.last.take().map(Ok));
            };
            self.received = self.received.saturating_add(piece.len() as u64);
            match self.announced {
                Some(announced) if self.received > announced => check_length(self.announced, self.received)?,
                Some(announced) if self.received == announced && !piece.is_empty() => self.last = Some(piece),
                _ if piece.is_empty() => {}
                _ => return Poll::Ready(Some(Ok(piece))),
            }
        }
    }
}

impl Stream for Body {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.failed.is_none() {
            return Poll::Ready(None);
        }
        let next = self.poll_piece(context);
        let waits_for = if next.is_pending() { Progress::Caller } else { Progress::Server(self.received) };
        self.progress.send_if_modified(|before| std::mem::replace(before, waits_for) != waits_for);
        Poll::Ready(ready!(next).map(|piece| {
            piece.map_err(|cause| {
                if let Some(failed) = self.failed.take() {
                    // Nobody listens where the operation was given up.
                    let _ = failed.send(cause);
                }
                io::Error::other("the content of the value failed")
            })
        }))
    }
}

impl From<Fault> for Unsent {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Unsent> for StoreError {
    fn from(unsent: Unsent) -> Self {
        match unsent {
            Unsent::Content(error) => error,
            Unsent::Fault(fault) => fault.into(),
        }
    }
}

fn check_length(announced: Option<u64>, received: u64) -> Result<(), UploadError> {
    match announced {
        Some(announced) if announced != received => Err(UploadError::LengthMismatch { announced, received }),
        _ => Ok(()),
    }
}

fn joined(pieces: Vec<Bytes>) -> Bytes {
    match <[Bytes; 1]>::try_from(pieces) {
        Ok([only]) => only,
        Err(pieces) => {
            let mut all = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
            pieces.iter().for_each(|piece| all.extend_from_slice(piece));
            all.freeze()
        }
    }
}
