//! `zarrd serve`.

use std::net::SocketAddr;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use server::App;
use tokio::{net::TcpListener, sync::oneshot};

use crate::{
    config::{Listen, ServeConfig},
    exit::Failure,
    opening::ServedStore,
    signals::{HangUp, Signals},
    ui,
};

/// Serves until a signal comes.
///
/// The address is taken before the store is opened: a server that cannot be reached makes no store. Who connects
/// meanwhile waits until the store is open.
pub(super) async fn run(mut config: ServeConfig) -> Result<(), Failure> {
    let mut signals = Signals::install(HangUp::Reloads)?;
    raise_file_limit();
    fit_connections(&mut config.settings.limits.connections);
    let (listener, address) = listen(config.listen).await?;
    let store = signals.finish(ServedStore::open(&config.store, config.access, config.write)).await?;
    let served = match signals.check() {
        Ok(()) => serve(&config, &store, listener, address, &mut signals).await,
        // A signal came before it began.
        Err(_) => Ok(()),
    };
    served.and(signals.finish(store.close()).await)
}

/// Serves until a signal comes, and then until running requests are done. A second signal ends the process at once.
async fn serve(
    config: &ServeConfig,
    store: &ServedStore,
    listener: TcpListener,
    address: SocketAddr,
    signals: &mut Signals,
) -> Result<(), Failure> {
    let app = App::new(store.shared(), config.settings.clone());
    ui::print(format_args!("zarrd is listening on http://{address} (store: {})", config.store));
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async {
        // An end of the channel would mean that nobody waits for a signal any more.
        let _ = stopped.await;
    };
    let mut serving = std::pin::pin!(server::serve(listener, app, stopped));
    let served = tokio::select! {
        served = &mut serving => served,
        signal = signals.next() => {
            tracing::info!(%signal, "stopping; running requests may finish, a second signal ends them");
            // Where nothing is served any more, nothing has to be stopped.
            let _ = stop.send(());
            signals.finish(serving).await
        }
    };
    served.map_err(Failure::Serve)
}

/// Takes the address, and tells the port where that was left open.
async fn listen(address: Listen) -> Result<(TcpListener, SocketAddr), Failure> {
    let fails = |source| Failure::Listen { address: address.0, source };
    let listener = TcpListener::bind(address.0).await.map_err(fails)?;
    let address = listener.local_addr().map_err(fails)?;
    Ok((listener, address))
}

/// The file descriptors that are left to everything that is neither a connection nor a value: the store's index, the log,
/// the program's own.
const RESERVED_FILES: u64 = 32;

/// Takes no more connections than there are file descriptors for: three eighths of those that are not reserved. An eighth
/// is for connections that are turned away, and half is what the store takes for values.
fn fit_connections(connections: &mut usize) {
    let Some(files) = getrlimit(Resource::Nofile).current else { return };
    let room = usize::try_from(files.saturating_sub(RESERVED_FILES) * 3 / 8).unwrap_or(usize::MAX).max(1);
    if *connections > room {
        tracing::warn!(
            "only {room} connections are taken at a time, not the {connections} of --max-connections, since at most {files} files may be open (ulimit -n)"
        );
        *connections = room;
    }
}

/// Takes as many file descriptors as are allowed: each connection needs one, and each value that is read.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the number of files that may be open stays as it is");
    }
}
