//! `zarrd serve`: serves a store over HTTP.

use std::net::SocketAddr;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use server::{App, RequestLogs};
use tokio::{net::TcpListener, sync::oneshot};

use crate::{
    config::{Listen, ServeConfig},
    error::Error,
    open::ServedStore,
    signals::{HangUp, Signals},
    ui,
};

/// Serves until a signal is received.
///
/// The server listens before it opens the store, so that it creates no store if the address is not available.
/// Connections wait until the store is open.
pub(super) async fn run(mut config: ServeConfig) -> Result<(), Error> {
    let mut signals = Signals::install(HangUp::Continue)?;
    raise_file_limit();
    fit_connections(&mut config.settings.limits.connections);
    let (listener, address) = listen(config.listen).await?;
    let logs = RequestLogs::open(&config.logs)?;
    let reopened = logs.clone();
    signals.at_hang_up(move || reopened.reopen());
    let store = signals.finish(ServedStore::open(&config.store, config.access, config.write)).await?;
    let served = match signals.check() {
        Ok(()) => serve(&config, &store, &logs, listener, address, &mut signals).await,
        // A signal was received before serving began.
        Err(_) => Ok(()),
    };
    let closed = signals.finish(store.close()).await.map_err(Into::into);
    // No request is left, so all lines are queued. An error would mean that the thread panicked.
    let _ = signals.finish(tokio::task::spawn_blocking(move || logs.close())).await;
    served.and(closed)
}

/// Serves until a signal is received and all running requests are done. A second signal ends the process immediately.
async fn serve(
    config: &ServeConfig,
    store: &ServedStore,
    logs: &RequestLogs,
    listener: TcpListener,
    address: SocketAddr,
    signals: &mut Signals,
) -> Result<(), Error> {
    let app = App::with_logs(store.shared(), config.settings.clone(), logs.clone());
    ui::print(format_args!("zarrd is listening on http://{address} (store: {})", config.store));
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async {
        // An error would mean that the sender was dropped, and no signal can stop the server any more.
        let _ = stopped.await;
    };
    let mut serving = std::pin::pin!(server::serve(listener, app, stopped));
    let served = tokio::select! {
        served = &mut serving => served,
        signal = signals.next() => {
            tracing::info!(%signal, "stopping; running requests may finish, a second signal ends them");
            // An error means that the server has stopped by itself.
            let _ = stop.send(());
            signals.finish(serving).await
        }
    };
    served.map_err(Error::Serve)
}

/// Listens on an address, and returns it with the port, which may have been 0.
async fn listen(address: Listen) -> Result<(TcpListener, SocketAddr), Error> {
    let fails = |source| Error::Listen { address: address.0, source };
    let listener = TcpListener::bind(address.0).await.map_err(fails)?;
    let address = listener.local_addr().map_err(fails)?;
    Ok((listener, address))
}

/// Number of file descriptors reserved for other purposes than connections and values: the index, the log, the program
/// itself.
const RESERVED_FILES: u64 = 32;

/// Limits the number of connections to three eighths of the file descriptors that are not reserved. An eighth is for
/// connections that are rejected, and half is for values.
fn fit_connections(connections: &mut usize) {
    let Some(files) = getrlimit(Resource::Nofile).current else { return };
    let limit = usize::try_from(files.saturating_sub(RESERVED_FILES) * 3 / 8).unwrap_or(usize::MAX).max(1);
    if *connections > limit {
        tracing::warn!(
            "limiting connections to {limit} instead of {connections} (--max-connections), since only {files} files may be open (ulimit -n)"
        );
        *connections = limit;
    }
}

/// Raises the limit of file descriptors as far as permitted: each connection and each value that is read needs one.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}
