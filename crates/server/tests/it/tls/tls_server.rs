//! A server with TLS, its certificates, and clients.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response};
use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, ServerName},
    },
};
use zarrd_server::{App, Certificates, Settings, serve_tls};
use zarrd_store::{Key, MemoryStore, Precondition, TransactionalStore};

pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// A certificate for `localhost` with its key.
pub(crate) struct Certificate {
    pub(crate) cert: String,
    pub(crate) key: String,
    pub(crate) der: CertificateDer<'static>,
}

/// A certificate and its key in files.
pub(crate) struct Files {
    dir: TempDir,
}

/// A server on a port of its own.
pub(crate) struct TlsServer {
    pub(crate) address: SocketAddr,
    pub(crate) store: Arc<dyn TransactionalStore>,
    pub(crate) files: Files,
    pub(crate) certificates: Arc<Certificates>,
    trusted: Vec<CertificateDer<'static>>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<std::io::Result<()>>,
}

/// An HTTP/2 connection.
pub(crate) struct Http2 {
    pub(crate) requests: h2::client::SendRequest<Bytes>,
    pub(crate) connection: JoinHandle<Result<(), h2::Error>>,
}

impl Certificate {
    pub(crate) fn new() -> Self {
        Self::with(|_| ())
    }

    pub(crate) fn with(change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let cert = params.self_signed(&key).unwrap();
        Self { cert: cert.pem(), key: key.serialize_pem(), der: cert.der().clone() }
    }
}

impl Files {
    pub(crate) fn new(certificate: &Certificate) -> Self {
        let files = Self { dir: tempfile::tempdir().unwrap() };
        files.replace(certificate);
        files
    }

    pub(crate) fn cert(&self) -> PathBuf {
        self.dir.path().join("cert.pem")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.dir.path().join("key.pem")
    }

    pub(crate) fn replace(&self, certificate: &Certificate) {
        self.replace_cert(&certificate.cert);
        self.replace_key(&certificate.key);
    }

    pub(crate) fn replace_cert(&self, pem: &str) {
        fs::write(self.cert(), pem).unwrap();
    }

    pub(crate) fn replace_key(&self, pem: &str) {
        fs::write(self.key(), pem).unwrap();
        set_mode(&self.key(), 0o600);
    }

    pub(crate) fn load(&self) -> Result<Arc<Certificates>, zarrd_server::CertificateError> {
        Certificates::load(self.cert(), self.key())
    }
}

pub(crate) fn set_mode(file: &Path, mode: u32) {
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
}

impl TlsServer {
    pub(crate) async fn start(settings: Settings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let certificate = Certificate::new();
        let files = Files::new(&certificate);
        let certificates = files.load().unwrap();
        let (stop, stopped) = oneshot::channel();
        let stopped = async move {
            let _ = stopped.await;
        };
        let store: Arc<dyn TransactionalStore> = Arc::new(MemoryStore::new());
        let task = tokio::spawn(serve_tls(listener, App::new(store.clone(), settings), certificates.clone(), stopped));
        Self { address, store, files, certificates, trusted: vec![certificate.der], stop: Some(stop), task }
    }

    /// Makes clients trust another certificate too.
    pub(crate) fn trust(&mut self, certificate: &Certificate) {
        self.trusted.push(certificate.der.clone());
    }

    pub(crate) async fn set(&self, key: &str, bytes: usize) {
        let value = vec![b'x'; bytes];
        self.store.set(&Key::parse(key).unwrap(), value.into(), Precondition::none()).await.unwrap();
    }

    pub(crate) async fn connect_tcp(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// A client that offers these protocols by ALPN.
    pub(crate) fn connector(&self, protocols: &[&str]) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        for certificate in &self.trusted {
            roots.add(certificate.clone()).unwrap();
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        TlsConnector::from(Arc::new(config))
    }

    pub(crate) async fn connect(&self, protocols: &[&str]) -> TlsStream<TcpStream> {
        let connecting =
            self.connector(protocols).connect(ServerName::try_from("localhost").unwrap(), self.connect_tcp().await);
        timeout(TIMEOUT, connecting).await.expect("the handshake ends").unwrap()
    }

    /// Sends an HTTP/1.1 request on a new connection, and reads until the server closes it.
    pub(crate) async fn exchange(&self, request: &str) -> std::io::Result<String> {
        exchange(self.connector(&["http/1.1"]), self.address, request).await
    }

    pub(crate) async fn http2(&self) -> Http2 {
        self.http2_with(&h2::client::Builder::new()).await
    }

    pub(crate) async fn http2_with(&self, builder: &h2::client::Builder) -> Http2 {
        let (requests, connection) = builder.handshake(self.connect(&["h2"]).await).await.unwrap();
        Http2 { requests, connection: tokio::spawn(connection) }
    }

    /// Begins the shutdown without waiting for it.
    pub(crate) fn stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    pub(crate) async fn stopped(self) {
        timeout(TIMEOUT, self.task).await.expect("the server stops").unwrap().unwrap();
    }
}

pub(crate) async fn exchange(connector: TlsConnector, address: SocketAddr, request: &str) -> std::io::Result<String> {
    let stream = TcpStream::connect(address).await?;
    let mut stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut text = String::new();
    timeout(TIMEOUT, stream.read_to_string(&mut text)).await.expect("the server closes")?;
    Ok(text)
}

pub(crate) fn request(method: Method, path: &str) -> Request<()> {
    Request::builder().method(method).uri(format!("https://localhost{path}")).body(()).unwrap()
}

impl Http2 {
    /// Sends a request without a body, and reads the response.
    pub(crate) async fn send(&self, request: Request<()>) -> Result<Response<Bytes>, h2::Error> {
        let mut requests = self.requests.clone().ready().await?;
        read(requests.send_request(request, true)?.0).await
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Response<Bytes>, h2::Error> {
        self.send(request(Method::GET, path)).await
    }

    /// Begins a `PUT`, whose body is still to be sent.
    pub(crate) async fn begin_put(&self, path: &str) -> (h2::client::ResponseFuture, h2::SendStream<Bytes>) {
        let mut requests = self.requests.clone().ready().await.unwrap();
        requests.send_request(request(Method::PUT, path), false).unwrap()
    }
}

/// Reads a response, and grants its windows.
pub(crate) async fn read(response: h2::client::ResponseFuture) -> Result<Response<Bytes>, h2::Error> {
    let (head, mut body) = timeout(TIMEOUT, response).await.expect("a response")?.into_parts();
    let mut bytes = Vec::new();
    while let Some(data) = timeout(TIMEOUT, body.data()).await.expect("data") {
        let data = data?;
        bytes.extend_from_slice(&data);
        body.flow_control().release_capacity(data.len())?;
    }
    Ok(Response::from_parts(head, bytes.into()))
}
