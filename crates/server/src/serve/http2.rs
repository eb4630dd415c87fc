//! Requests over HTTP/2.

use std::{convert::Infallible, future::Future, time::Duration};

use http::{
    HeaderMap, HeaderName,
    header::{CONNECTION, TRANSFER_ENCODING, UPGRADE},
};
use hyper::{body::Incoming, rt::Executor, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    http1::READ_BUFFER_BYTES,
    requests::{ConnectionMode, Requests},
    stream_progress::{PIECE_BYTES, StreamProgress, TrackedBody},
};
use crate::{progress_timeout::ProgressTimeout, request_log::LoggedError, settings::Limits};

/// The maximum number of concurrent streams of a connection.
const MAX_STREAMS: u32 = 100;
/// The maximum size of a request's headers, in bytes with the overhead of RFC 9113, section 6.5.2.
const MAX_HEADER_LIST_BYTES: u32 = READ_BUFFER_BYTES as u32;
/// The flow-control windows for uploads, in bytes. The window of a connection bounds its unread data, and two streams
/// that are not read leave room for no other one.
const STREAM_WINDOW_BYTES: u32 = 512 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
/// The maximum number of streams that were reset by the client before their requests were accepted.
const MAX_PENDING_RESETS: usize = 20;
/// The maximum number of streams that were reset because of the client's errors.
const MAX_ERROR_RESETS: usize = 64;
/// The time without any frame after which the client is sent a PING.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// The time for the client to close the connection after `GOAWAY`.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Headers that belong to an HTTP/1 connection (RFC 9113, section 8.2.2).
const CONNECTION_HEADERS: [HeaderName; 5] = [
    CONNECTION,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Runs each stream of a connection as a task, which ends with the connection.
#[derive(Clone)]
struct StreamExecutor {
    limits: Limits,
    streams: TaskTracker,
    /// Cancelled when the connection has ended.
    ended: CancellationToken,
    /// Cancelled to end the connection.
    abort: CancellationToken,
}

/// Serves requests on `stream` until it ends or has been idle for the header timeout. After `stopping` is cancelled,
/// ends with the current requests.
///
/// The tasks of its streams run in `streams`.
pub(super) async fn serve<S>(stream: S, requests: Requests, streams: TaskTracker, stopping: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = requests.app.settings().limits;
    let (mode, activity) = (requests.mode, requests.activity.clone());
    let (ended, abort, closing) = (CancellationToken::new(), CancellationToken::new(), CancellationToken::new());
    let executor = StreamExecutor { limits, streams, ended: ended.clone(), abort: abort.clone() };
    // Streams end when this connection is dropped, as requests over HTTP/1 do.
    let _ended = ended.drop_guard();
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let (requests, closing) = (requests.clone(), closing.clone());
        async move {
            let (mut response, in_flight) = requests.handle(request).await;
            remove_connection_headers(response.headers_mut());
            if mode == ConnectionMode::Reject {
                closing.cancel();
            }
            let progress = StreamProgress::current()
                .unwrap_or_else(|| StreamProgress::new(ProgressTimeout::for_downloads(&limits)));
            Ok::<_, Infallible>(response.map(|body| TrackedBody::new(body, progress, in_flight)))
        }
    });
    let mut connection = std::pin::pin!(builder(&limits, executor).serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        ended = connection.as_mut() => return log(ended),
        () = abort.cancelled() => return,
        () = stopping.cancelled() => (),
        () = closing.cancelled() => (),
        () = activity.idle_for(limits.header_timeout) => (),
    };
    connection.as_mut().graceful_shutdown();
    let unclosed = async {
        sleep(CLOSE_TIMEOUT).await;
        activity.idle_for(CLOSE_TIMEOUT).await;
    };
    tokio::select! {
        ended = connection => log(ended),
        () = abort.cancelled() => (),
        () = unclosed => tracing::debug!("client did not close its connection"),
    }
}

fn builder(limits: &Limits, executor: StreamExecutor) -> http2::Builder<StreamExecutor> {
    let mut builder = http2::Builder::new(executor);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_LIST_BYTES)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(PIECE_BYTES)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_local_error_reset_streams(MAX_ERROR_RESETS)
        .keep_alive_interval(PING_INTERVAL)
        // A client that may pause an upload or a download may also leave a PING unanswered.
        .keep_alive_timeout(limits.upload_timeout.max(limits.download_timeout));
    builder
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let (executor, ended) = (self.clone(), self.ended.clone());
        self.streams.spawn(async move {
            let _ = ended.run_until_cancelled(executor.run(stream)).await;
        });
    }
}

impl StreamExecutor {
    /// Runs a stream until its response is sent, or until the client has stalled it.
    async fn run(&self, stream: impl Future<Output = ()>) {
        let progress = StreamProgress::new(ProgressTimeout::for_downloads(&self.limits));
        tokio::select! {
            biased;
            () = progress.observe(stream) => (),
            // Dropping the stream resets it.
            () = progress.stalled() => return tracing::debug!("stream reset, since its client accepts no data"),
        }
        // The queue of h2 can only be discarded with the connection.
        tokio::select! {
            biased;
            () = progress.drained() => (),
            () = progress.stalled() => self.abort.cancel(),
        }
    }
}

fn remove_connection_headers(headers: &mut HeaderMap) {
    for name in &CONNECTION_HEADERS {
        headers.remove(name);
    }
}

fn log(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(error = %LoggedError(&error), "connection ended early");
    }
}
