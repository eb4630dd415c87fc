//! `zarrd serve`: serves a store over HTTP.

use std::{net::SocketAddr, sync::Arc};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::{Notify, oneshot},
};
use tokio_util::task::AbortOnDropHandle;
use zarrd_disk_cache::DiskCache;
use zarrd_executor::spawn_blocking;
use zarrd_server::{App, Certificates, OPEN_ACCESS_KEY, OPEN_SECRET_KEY, RequestLogs, Surface};
use zarrd_store::{OpenOptions, Pieces, ServedStore};

use super::{disk_cache, upload_sweep::sweep_uploads};
use crate::{
    config::{Listen, ServeConfig, TlsFiles},
    error::Error,
    open::{OpenStoreError, ServedStores},
    served_tokens,
    signals::{HangUp, Signals},
    ui,
};

/// The number of connections that may wait to be accepted, unless the system's limit is lower. One more makes its client
/// try again after a second.
const MAX_WAITING_CONNECTIONS: u32 = 4096;

/// The listening sockets, and what they serve.
struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    /// The socket at whose root the store is served over WebDAV.
    dav: Option<(TcpListener, SocketAddr)>,
    /// The socket at which the store is served to S3 clients.
    s3: Option<(TcpListener, SocketAddr)>,
    /// The certificates, unless connections are plain.
    tls: Option<Arc<Certificates>>,
}

/// Serves until a signal is received.
///
/// The server listens before it opens the store, so that it creates no store if the address is not available.
/// Connections wait until the store is open.
pub(super) async fn run(mut config: ServeConfig) -> Result<(), Error> {
    let mut signals = Signals::install(HangUp::Continue)?;
    let tls = load_certificates(config.tls.take()).await?;
    raise_file_limit();
    let cache_files = disk_cache::files(&config);
    fit_connections(&mut config.settings.limits.connections, cache_files);
    let (listener, address) = listen(config.listen).await?;
    let dav = listen_if_given(config.dav_listen).await?;
    let s3 = listen_if_given(config.s3_listen).await?;
    let logs = RequestLogs::open(&config.logs)?;
    let reopened = logs.clone();
    signals.at_hang_up(move || reopened.reopen());
    let hang_up = Arc::new(Notify::new());
    let notified = hang_up.clone();
    signals.at_hang_up(move || notified.notify_one());
    let cache = signals.finish(disk_cache::open(&config)).await?;
    let store = signals.finish(open(&config, cache.clone())).await?;
    let served = match signals.check() {
        Ok(()) => {
            let watch = |tls: Arc<Certificates>| tls.watch(move || hang_up.clone().notified_owned());
            let _watching = tls.clone().map(|tls| AbortOnDropHandle::new(tokio::spawn(watch(tls))));
            let listening = Listening { listener, address, dav, s3, tls };
            serve(&config, &store, &logs, listening, &mut signals).await
        }
        // A signal was received before serving began.
        Err(_) => Ok(()),
    };
    let closed = signals.finish(store.close()).await.map_err(Into::into);
    if let Some(cache) = cache {
        signals.finish(cache.close()).await;
    }
    // No request is left, so all lines are queued. An error would mean that the thread panicked.
    let _ = signals.finish(spawn_blocking(move || logs.close())).await;
    served.and(closed)
}

/// Serves until a signal is received and all running requests are done. A second signal ends the process immediately.
async fn serve(
    config: &ServeConfig,
    store: &ServedStores,
    logs: &RequestLogs,
    listening: Listening,
    signals: &mut Signals,
) -> Result<(), Error> {
    let Listening { listener, address, dav, s3, tls } = listening;
    let tokens = served_tokens::open(config).await?;
    let shared = store.shared();
    log_guarantees(config, &shared);
    let swept = shared.commits().ok().map(|store| sweep_uploads(Arc::clone(store)));
    let _sweeping = swept.map(|swept| AbortOnDropHandle::new(tokio::spawn(swept)));
    let scheme = if tls.is_some() { "https" } else { "http" };
    let mut settings = config.settings.clone();
    settings.s3.url = s3.as_ref().map(|(_, address)| {
        let domain = settings.s3.domain.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("{scheme}://{domain}:{}", address.port())
    });
    let app = App::with_logs(shared, settings, logs.clone());
    let other_choice = config.other_choice.as_ref().map(|other| format!(", {other}")).unwrap_or_default();
    ui::print(format_args!("zarrd is listening on {scheme}://{address} (store: {}{other_choice})", config.store));
    let mut listeners = vec![(listener, Surface::Api)];
    if let Some((listener, address)) = dav {
        ui::print(format_args!("WebDAV is at {scheme}://{address}/"));
        listeners.push((listener, Surface::Root));
    }
    if let Some((listener, address)) = s3 {
        ui::print(format_args!(
            "S3 is at {scheme}://{address} (without a token: unsigned, or with the access key {OPEN_ACCESS_KEY} and the \
             secret key {OPEN_SECRET_KEY})"
        ));
        listeners.push((listener, Surface::S3));
    }
    tokens.print_first();
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async {
        // An error would mean that the sender was dropped, and no signal can stop the server any more.
        let _ = stopped.await;
    };
    let mut serving = std::pin::pin!(zarrd_server::serve_surfaces(listeners, app, tls, stopped));
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

/// Opens the stores, and reads distant ones through the cache.
async fn open(config: &ServeConfig, cache: Option<Arc<DiskCache>>) -> Result<ServedStores, OpenStoreError> {
    let pieces = cache.map(|cache| Pieces::new(cache));
    let options = OpenOptions { excluded: &config.private, pieces: pieces.as_ref() };
    ServedStores::open(&config.store, config.access, config.write, (&config.mounts, config.mount_access, &options))
        .await
}

/// Logs the guarantees of each store.
fn log_guarantees(config: &ServeConfig, store: &ServedStore) {
    for (name, guarantees) in store.reads().parts() {
        let mount =
            config.mounts.iter().find(|mount| name.as_ref().is_some_and(|name| mount.name.to_string() == *name));
        match mount {
            Some(mount) => tracing::info!(%mount, "guarantees of the mounted store: {guarantees}"),
            None => tracing::info!(store = %config.store, "guarantees of the store: {guarantees}"),
        }
    }
}

/// Loads the certificates, off the runtime's threads, since files may be slow.
async fn load_certificates(files: Option<TlsFiles>) -> Result<Option<Arc<Certificates>>, Error> {
    let Some(TlsFiles { cert, key }) = files else { return Ok(None) };
    let loaded = spawn_blocking(move || Certificates::load(cert, key)).await;
    Ok(Some(loaded.map_err(|error| Error::Runtime(error.into()))??))
}

/// Listens on an address, if there is one.
async fn listen_if_given(address: Option<Listen>) -> Result<Option<(TcpListener, SocketAddr)>, Error> {
    match address {
        Some(address) => listen(address).await.map(Some),
        None => Ok(None),
    }
}

/// Listens on an address, and returns it with the port, which may have been 0.
async fn listen(address: Listen) -> Result<(TcpListener, SocketAddr), Error> {
    let fails = |source| Error::Listen { address: address.0, source };
    let socket = if address.0.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(fails)?;
    // A restarted server takes its address again, although old connections still end.
    socket.set_reuseaddr(true).map_err(fails)?;
    socket.bind(address.0).map_err(fails)?;
    let listener = socket.listen(MAX_WAITING_CONNECTIONS).map_err(fails)?;
    let address = listener.local_addr().map_err(fails)?;
    Ok((listener, address))
}

/// Number of file descriptors reserved for other purposes than connections and values: the index, the log, the program
/// itself.
const RESERVED_FILES: u64 = 32;

/// Limits the number of connections to three eighths of the file descriptors that are neither reserved nor for the disk
/// cache. An eighth is for connections that are rejected, and half is for values.
fn fit_connections(connections: &mut usize, cache_files: u64) {
    let Some(files) = getrlimit(Resource::Nofile).current else { return };
    let files = files.saturating_sub(cache_files);
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
