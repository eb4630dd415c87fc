//! `zarrd serve`.

use std::{net::SocketAddr, process};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use server::App;
use tokio::net::TcpListener;

use crate::{
    config::{Listen, ServeConfig},
    exit::Failure,
    opening::ServedStore,
    signals::Signals,
    ui,
};

/// Serves until a signal comes.
pub(super) async fn run(config: ServeConfig) -> Result<(), Failure> {
    raise_file_limit();
    let store = ServedStore::open(&config.store).await?;
    let served = serve(&config, &store).await;
    served.and(store.close().await)
}

async fn serve(config: &ServeConfig, store: &ServedStore) -> Result<(), Failure> {
    let (listener, address) = listen(config.listen).await?;
    let signals = Signals::install()?;
    let app = App::new(store.shared(), config.settings.clone());
    ui::print(format_args!("zarrd is listening on http://{address} (store: {})", config.store));
    server::serve(listener, app, told_to_stop(signals)).await.map_err(Failure::Serve)
}

/// Takes the address, and tells the port where that was left open.
async fn listen(address: Listen) -> Result<(TcpListener, SocketAddr), Failure> {
    let fails = |source| Failure::Listen { address: address.0, source };
    let listener = TcpListener::bind(address.0).await.map_err(fails)?;
    let address = listener.local_addr().map_err(fails)?;
    Ok((listener, address))
}

/// Waits for a signal. A second one, while requests finish and the store is closed, ends the process at once; the store is
/// made for that.
async fn told_to_stop(mut signals: Signals) {
    let signal = signals.next().await;
    tracing::info!(%signal, "stopping; running requests may finish, a second signal ends them");
    tokio::spawn(async move {
        let signal = signals.next().await;
        process::exit(signal.code().into());
    });
}

/// Takes as many file descriptors as are allowed: each connection needs one, and each value that is read.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the number of files that may be open stays as it is");
    }
}
