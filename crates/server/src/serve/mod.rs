//! The accept loop and connection limits.

mod connection;
mod lingering;
mod slots;
mod write_timeout;

use std::{future::Future, io, net::IpAddr, sync::Arc, time::Duration};

use socket2::SockRef;
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    connection::{Connection, ConnectionMode},
    slots::{ConnectionSlot, ConnectionSlots, SlotSource},
};
use crate::app::App;

/// The maximum number of connections beyond the limit that are rejected with a response, or serve monitoring endpoints,
/// at the same time. Capped at a quarter of the limit, since each takes a file descriptor. Further connections are
/// closed without a response.
const MAX_REJECTED_CONNECTIONS: usize = 64;
/// The maximum number of unsent bytes in the socket's buffer. With the default of megabytes, a slow client would appear
/// to make progress only every few minutes.
const MAX_UNSENT_BYTES: u32 = 64 << 10;
/// The delay before accepting again after running out of file descriptors or memory.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Serves `app` on `listener` until `stop` completes.
///
/// Shutdown stops accepting, closes idle connections, and lets requests finish for at most
/// [`Limits::stop_timeout`](crate::Limits::stop_timeout). Returns when the last connection has ended.
pub async fn serve(listener: TcpListener, app: App, stop: impl Future<Output = ()> + Send) -> io::Result<()> {
    let server = Server::new(app);
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, peer)) => server.accept(stream, peer.ip()),
            Err(error) if concerns_one_connection(&error) => {
                tracing::debug!(%error, "connection lost before it was accepted")
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
    drop(listener);
    server.stop().await;
    Ok(())
}

struct Server {
    app: App,
    slots: Arc<ConnectionSlots>,
    rejection_slots: Arc<ConnectionSlots>,
    connections: TaskTracker,
    stopping: CancellationToken,
    aborting: CancellationToken,
}

impl Server {
    fn new(app: App) -> Self {
        let slots = app.settings().limits.connections;
        Self {
            app,
            slots: ConnectionSlots::new(slots),
            rejection_slots: ConnectionSlots::new(MAX_REJECTED_CONNECTIONS.min(slots / 4 + 1)),
            connections: TaskTracker::new(),
            stopping: CancellationToken::new(),
            aborting: CancellationToken::new(),
        }
    }

    /// Accepts a connection, evicting an idle one if necessary, or rejects it.
    fn accept(&self, stream: TcpStream, peer: IpAddr) {
        // Responses are written in full, so delaying small writes only adds latency. A failure is harmless.
        let _ = stream.set_nodelay(true);
        // If this fails, slow clients are detected later.
        let _ = SockRef::from(&stream).set_tcp_notsent_lowat(MAX_UNSENT_BYTES);
        if let Some((slot, source)) = self.slots.acquire() {
            if source == SlotSource::Evicted {
                self.app.metrics().connection_evicted();
            }
            return self.run(stream, peer, ConnectionMode::Serve, slot);
        }
        self.app.metrics().connection_rejected();
        if let Some((slot, _)) = self.rejection_slots.acquire() {
            self.run(stream, peer, ConnectionMode::Reject, slot);
        }
    }

    fn run(&self, stream: TcpStream, peer: IpAddr, mode: ConnectionMode, slot: ConnectionSlot) {
        let (app, stopping, aborting) = (self.app.clone(), self.stopping.clone(), self.aborting.clone());
        self.connections.spawn(async move {
            let _guard = app.metrics().open_connection();
            let connection =
                Connection { app: app.clone(), stream, peer, mode, activity: slot.activity().clone(), stopping };
            // An aborted connection is dropped at once, as if the client had disconnected.
            let _ = aborting.run_until_cancelled(connection.run()).await;
            drop(slot);
        });
    }

    async fn stop(self) {
        self.stopping.cancel();
        self.connections.close();
        let deadline = self.app.settings().limits.stop_timeout;
        if timeout(deadline, self.connections.wait()).await.is_err() {
            tracing::warn!(connections = self.connections.len(), "shutdown timeout reached; aborting connections");
            self.aborting.cancel();
            self.connections.wait().await;
        }
    }
}

fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}
