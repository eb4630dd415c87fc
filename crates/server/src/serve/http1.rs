//! Requests over HTTP/1.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
};

use http::StatusCode;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{requests::Requests, slots::RequestInFlight};
use crate::{
    observed_body::{BodyObserver, ObservedBody},
    request_log::{LoggedError, MalformedHead},
};

/// The size of the read buffer, in bytes. A request head may be up to twice as long.
pub(super) const READ_BUFFER_BYTES: usize = 64 << 10;

/// A response counts as in flight until its body is dropped.
impl BodyObserver for RequestInFlight {}

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
            Ok::<_, Infallible>(response.map(|body| ObservedBody::wrap(body, in_flight)))
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
    let Err(error) = ended.await else { return };
    tracing::debug!(error = %LoggedError(&error), "connection ended early");
    if error.is_parse() {
        let (app, peer) = (&requests.app, requests.peer);
        let id = app.request_ids().generate();
        MalformedHead { peer, id, status: status_of_malformed_head(&error) }.log(app.logs());
    }
}

/// The status with which hyper rejected a malformed head; `None` if it closed the connection without a response.
fn status_of_malformed_head(error: &hyper::Error) -> Option<StatusCode> {
    if error.is_parse_version_h2() {
        return None;
    }
    Some(match error.is_parse_too_large() {
        // Only the text distinguishes the two.
        true if error.to_string().contains("URI") => StatusCode::URI_TOO_LONG,
        true => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        false => StatusCode::BAD_REQUEST,
    })
}
