//! A single connection.

use std::{sync::Arc, time::Duration};

use tokio::{
    net::TcpStream,
    time::{timeout, timeout_at},
};
use tokio_rustls::rustls::ServerConfig;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    handshake::{self, Protocol},
    http1, http2,
    lingering::Lingering,
    requests::{ConnectionMode, Requests},
    write_timeout::WriteTimeoutStream,
};
use crate::progress_timeout::ProgressTimeout;

/// The time limit for rejecting a connection.
const REJECT_TIMEOUT: Duration = Duration::from_secs(5);

/// An accepted connection.
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    /// TLS, unless the connection is plain.
    pub(super) tls: Option<Arc<ServerConfig>>,
    pub(super) requests: Requests,
    /// The streams of all HTTP/2 connections.
    pub(super) streams: TaskTracker,
    pub(super) stopping: CancellationToken,
}

impl Connection {
    /// Runs until the connection ends or is evicted. After `stopping` is cancelled, ends with the current requests.
    pub(super) async fn run(self) {
        let (activity, mode) = (self.requests.activity.clone(), self.requests.mode);
        let served = async {
            match mode {
                ConnectionMode::Serve => self.serve().await,
                // A client too slow for this gets no response.
                ConnectionMode::Reject => timeout(REJECT_TIMEOUT, self.serve()).await.unwrap_or_default(),
            }
        };
        tokio::select! { () = served => (), () = activity.evicted() => (), () = activity.observe_presence() => () }
    }

    async fn serve(self) {
        let Self { stream, tls, requests, streams, stopping } = self;
        let limits = requests.app.settings().limits;
        let downloads = ProgressTimeout::for_downloads(&limits);
        let activity = requests.activity.clone();
        let wrapped = |stream| WriteTimeoutStream::new(Lingering::new(stream, activity, stopping.clone()), downloads);
        let Some(tls) = tls else { return http1::serve(wrapped(stream), requests, stopping).await };
        let deadline = tokio::time::Instant::now() + limits.header_timeout;
        let accepted = timeout_at(deadline, handshake::accept(stream, wrapped, tls));
        // A handshake is idle, so that the shutdown ends it.
        match stopping.run_until_cancelled(accepted).await {
            Some(Ok(Some(accepted))) if accepted.protocol == Protocol::Http2 => {
                http2::serve(accepted.stream, requests, streams, stopping).await;
            }
            Some(Ok(Some(accepted))) => http1::serve(accepted.stream, requests, stopping).await,
            Some(Ok(None)) | None => {}
            Some(Err(_)) => tracing::debug!("TLS handshake timed out (--header-timeout)"),
        }
    }
}
