//! The accept loop and connection limits.

mod certificates;
mod connection;
mod handshake;
mod http1;
mod http2;
mod key_pair;
mod lingering;
mod priority;
mod requests;
mod runtimes;
mod slots;
mod stream_progress;
mod write_timeout;

use std::{future::Future, io, net::IpAddr, sync::Arc, time::Duration};

use futures::future::join_all;
use socket2::SockRef;
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Handle,
    sync::Semaphore,
    time::timeout,
};
use tokio_rustls::rustls::ServerConfig;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{Instrument, trace_span};
use zarrd_executor::STEPS;
use zarrd_store::{Admitted, WarningRate};

pub use self::{certificates::Certificates, key_pair::CertificateError};
use self::{
    connection::Connection,
    requests::{ConnectionMode, Requests},
    runtimes::ConnectionTasks,
    slots::{ConnectionSlot, ConnectionSlots, SlotSource},
};
use crate::{
    app::App,
    caller::{self, Peer},
    surface::Surface,
};

/// The maximum number of connections beyond the limit that are rejected with a response, or serve monitoring endpoints,
/// at the same time. Capped at a quarter of the limit, since each takes a file descriptor. Further connections are
/// closed without a response.
const MAX_REJECTED_CONNECTIONS: usize = 64;
/// The maximum number of unsent bytes in the socket's buffer. With the default of megabytes, a slow client would appear
/// to make progress only every few minutes.
const MAX_UNSENT_BYTES: u32 = 64 << 10;
/// The delay before accepting again after running out of file descriptors or memory.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Serves `app` on `listener` over HTTP/1 until `stop` completes.
///
/// Shutdown stops accepting, closes idle connections, and lets requests finish for at most
/// [`Limits::stop_timeout`](crate::Limits::stop_timeout). Returns when the last connection has ended.
pub async fn serve(listener: TcpListener, app: App, stop: impl Future<Output = ()> + Send) -> io::Result<()> {
    serve_surfaces(vec![(listener, Surface::Api)], app, None, stop).await
}

/// Serves `app` like [`serve`], but over TLS, with HTTP/2 for clients that ask for it.
pub async fn serve_tls(
    listener: TcpListener,
    app: App,
    certificates: Arc<Certificates>,
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    serve_surfaces(vec![(listener, Surface::Api)], app, Some(certificates), stop).await
}

/// Serves several surfaces of `app` like [`serve`], or with certificates like [`serve_tls`], each on a listener of its
/// own. All listeners together have the limits of one.
pub async fn serve_surfaces(
    listeners: Vec<(TcpListener, Surface)>,
    app: App,
    certificates: Option<Arc<Certificates>>,
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let tls = match certificates {
        Some(certificates) => Some(Arc::new(handshake::config(certificates).map_err(io::Error::other)?)),
        None => None,
    };
    Server::new(app, tls).run(listeners, stop).await;
    Ok(())
}

/// Warnings that clients cause by connecting.
static WARNINGS: WarningRate = WarningRate::new();

struct Server {
    app: App,
    /// TLS, unless connections are plain.
    tls: Option<Arc<ServerConfig>>,
    slots: Arc<ConnectionSlots>,
    rejection_slots: Arc<ConnectionSlots>,
    connections: ConnectionTasks,
    /// Streams of HTTP/2 connections.
    streams: TaskTracker,
    /// Permits for requests that share their connection with others: as many as connections, so that HTTP/2 at most
    /// doubles the number of requests.
    concurrent: Arc<Semaphore>,
    stopping: CancellationToken,
    aborting: CancellationToken,
}

impl Server {
    fn new(app: App, tls: Option<Arc<ServerConfig>>) -> Self {
        let slots = app.settings().limits.connections;
        Self {
            app,
            tls,
            slots: ConnectionSlots::new(slots),
            rejection_slots: ConnectionSlots::new(MAX_REJECTED_CONNECTIONS.min(slots / 4 + 1)),
            connections: ConnectionTasks { tracker: TaskTracker::new(), normal: Handle::current() },
            streams: TaskTracker::new(),
            concurrent: Arc::new(Semaphore::new(slots.min(Semaphore::MAX_PERMITS))),
            stopping: CancellationToken::new(),
            aborting: CancellationToken::new(),
        }
    }

    /// Accepts connections until `stop` completes, and then lets requests finish.
    async fn run(self, listeners: Vec<(TcpListener, Surface)>, stop: impl Future<Output = ()> + Send) {
        let accepting = join_all(listeners.into_iter().map(|(listener, surface)| self.accept_from(listener, surface)));
        // Dropping the listeners closes them.
        tokio::select! {
            _ = accepting => (),
            () = stop => (),
        }
        self.stop().await;
    }

    /// Accepts connections of one listener.
    async fn accept_from(&self, listener: TcpListener, surface: Surface) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => self.accept(stream, peer.ip(), surface),
                Err(error) if concerns_one_connection(&error) => {
                    tracing::debug!(%error, "connection lost before it was accepted")
                }
                Err(error) => {
                    if let Some(Admitted { left_out }) = WARNINGS.admit("accept") {
                        tracing::warn!(%error, left_out, "cannot accept connections");
                    }
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
    }

    /// Accepts a connection, evicting an idle one if necessary, or rejects it.
    fn accept(&self, stream: TcpStream, peer: IpAddr, surface: Surface) {
        // Responses are written in full, so delaying small writes only adds latency. A failure is harmless.
        let _ = stream.set_nodelay(true);
        // If this fails, slow clients are detected later.
        let _ = SockRef::from(&stream).set_tcp_notsent_lowat(MAX_UNSENT_BYTES);
        let direct = Peer::new(&self.app.settings().proxies, peer).untrusted();
        let caller = direct.map(caller::for_address);
        if let Some((slot, source)) = self.slots.acquire(caller) {
            if source == SlotSource::Evicted {
                self.app.metrics().connection_evicted();
            }
            return self.spawn(stream, (peer, surface), ConnectionMode::Serve, slot);
        }
        self.app.metrics().connection_rejected();
        if let Some((slot, _)) = self.rejection_slots.acquire(caller) {
            self.spawn(stream, (peer, surface), ConnectionMode::Reject, slot);
        }
    }

    fn spawn(&self, stream: TcpStream, (peer, surface): (IpAddr, Surface), mode: ConnectionMode, slot: ConnectionSlot) {
        let (app, aborting) = (self.app.clone(), self.aborting.clone());
        let connection = Connection {
            stream,
            tls: self.tls.clone(),
            requests: Requests {
                app: app.clone(),
                peer,
                surface,
                mode,
                tls: self.tls.is_some(),
                activity: slot.activity().clone(),
                concurrent: self.concurrent.clone(),
            },
            streams: self.streams.clone(),
            stopping: self.stopping.clone(),
        };
        let activity = slot.activity().clone();
        let served = async move {
            let _guard = app.metrics().open_connection();
            // An aborted connection is dropped at once, as if the client had disconnected.
            let _ = aborting.run_until_cancelled(connection.run()).await;
            drop(slot);
        };
        let step = trace_span!(target: STEPS, "accept");
        self.connections.spawn(activity, Box::pin(served.instrument(step)));
    }

    async fn stop(self) {
        self.stopping.cancel();
        let connections = &self.connections.tracker;
        connections.close();
        let deadline = self.app.settings().limits.stop_timeout;
        if timeout(deadline, connections.wait()).await.is_err() {
            tracing::warn!(connections = connections.len(), "shutdown timeout reached; aborting connections");
            self.aborting.cancel();
            connections.wait().await;
        }
        // Streams end with their connections.
        self.streams.close();
        self.streams.wait().await;
    }
}

fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}
