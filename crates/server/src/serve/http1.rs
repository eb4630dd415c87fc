//! Requests over HTTP/1.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{requests::Requests, slots::RequestInFlight};

/// The size of the read buffer, in bytes. A request head may be up to twice as long.
pub(super) const READ_BUFFER_BYTES: usize = 64 << 10;

/// A response body that counts as a request in flight until dropped.
struct InFlightBody {
    body: Body,
    _in_flight: RequestInFlight,
}

/// Serves requests on `stream` until it ends. After `stopping` is cancelled, ends with the current request.
pub(super) async fn serve<S>(stream: S, requests: Requests, stopping: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let header_timeout = requests.app.settings().limits.header_timeout;
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(header_timeout).max_buf_size(READ_BUFFER_BYTES);
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let requests = requests.clone();
        async move {
            let (response, in_flight) = requests.handle(request).await;
            Ok::<_, Infallible>(response.map(|body| Body::new(InFlightBody { body, _in_flight: in_flight })))
        }
    });
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut shutting_down = false;
    let mut stop = std::pin::pin!(stopping.cancelled());
    let ended = poll_fn(|context| {
        if !shutting_down && stop.as_mut().poll(context).is_ready() {
            shutting_down = true;
            connection.as_mut().graceful_shutdown();
        }
        connection.as_mut().poll(context)
    });
    if let Err(error) = ended.await {
        tracing::debug!(error = &error as &dyn std::error::Error, "connection ended early");
    }
}

impl http_body::Body for InFlightBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
