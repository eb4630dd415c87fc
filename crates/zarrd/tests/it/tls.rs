//! `serve` with `--tls-cert` and `--tls-key`.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};
use zarrd_client::{BaseUrl, HttpStore};

use crate::runner::{Server, TestDir};

const TLS: [&str; 6] = ["--store", "memory:", "--tls-cert", "cert.pem", "--tls-key", "key.pem"];

/// Writes a new certificate for `localhost` and its key; returns the certificate in PEM.
fn write_certificate(dir: &TestDir) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    dir.write("cert.pem", certificate.pem());
    dir.write("key.pem", key.serialize_pem());
    set_mode(dir, 0o600);
    certificate.pem()
}

fn set_mode(dir: &TestDir, mode: u32) {
    fs::set_permissions(dir.path("key.pem"), fs::Permissions::from_mode(mode)).unwrap();
}

/// True if a new client that trusts only this certificate reaches the server.
async fn is_reached(server: &Server, certificate: &str) -> bool {
    let url = server.url().replace("127.0.0.1", "localhost");
    let client = HttpStore::builder(BaseUrl::parse(&url).unwrap()).certificates(certificate.as_bytes()).unwrap();
    client.retries(zarrd_client::Retries::none()).build().unwrap().ready().await.is_ok()
}

#[tokio::test]
async fn server_speaks_tls() {
    let mut dir = TestDir::new();
    let certificate = write_certificate(&dir);
    let server = dir.serve(&TLS);
    assert!(server.line.starts_with("zarrd is listening on https://127.0.0.1:"), "{}", server.line);
    assert!(is_reached(&server, &certificate).await);
    server.stop();
    dir.env("ZARRD_TLS_KEY", "key.pem");
    dir.write("zarrd.toml", "tls-cert = \"cert.pem\"\nstore = \"memory:\"");
    let server = dir.serve(&[]);
    assert!(server.line.contains("https://") && is_reached(&server, &certificate).await);
}

#[test]
fn unusable_certificates_are_exit_code_2() {
    let dir = TestDir::new();
    dir.fails(&["serve", "--tls-cert", "cert.pem"], 2, &["--tls-cert needs --tls-key"]);
    dir.fails(&["serve", "--tls-key", "key.pem"], 2, &["--tls-key needs --tls-cert"]);
    let serve = [["serve"].as_slice(), &TLS].concat();
    dir.fails(&serve, 2, &["cannot read cert.pem (--tls-cert)", "No such file"]);
    write_certificate(&dir);
    set_mode(&dir, 0o644);
    dir.fails(&serve, 2, &["key.pem (--tls-key) is accessible to other users (mode 0644)", "chmod 600"]);
    set_mode(&dir, 0o600);
    dir.write("key.pem", rcgen::KeyPair::generate().unwrap().serialize_pem());
    dir.fails(&serve, 2, &["is not that of the certificate in cert.pem"]);
}

#[tokio::test]
async fn certificate_is_replaced_on_sighup_and_on_change() {
    let dir = TestDir::new();
    let first = write_certificate(&dir);
    let server = dir.serve(&TLS);
    assert!(is_reached(&server, &first).await);
    let mut current = first;
    for on_signal in [true, false] {
        let new = write_certificate(&dir);
        if on_signal {
            server.signal(Signal::HUP);
        }
        let started = Instant::now();
        while !is_reached(&server, &new).await {
            assert!(started.elapsed() < Duration::from_secs(20), "it is not replaced");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(!is_reached(&server, &current).await);
        current = new;
    }
    dir.write("key.pem", "");
    server.signal(Signal::HUP);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(is_reached(&server, &current).await, "the certificate in use is kept");
    let log = server.stop();
    assert_eq!(log.matches("loaded a new TLS certificate, valid until").count(), 2, "{log}");
    assert!(log.contains("cannot load a new TLS certificate") && log.contains("no private key in PEM"), "{log}");
}

#[test]
fn health_trusts_the_certificate() {
    let mut dir = TestDir::new();
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    dir.write("cert.pem", params.self_signed(&key).unwrap().pem());
    dir.write("key.pem", key.serialize_pem());
    set_mode(&dir, 0o600);
    let server = dir.serve(&TLS);
    dir.env("ZARRD_LISTEN", &server.url().replace("https://", ""));
    dir.succeeds(&["health", "--tls-cert", "cert.pem"]);
    dir.fails(&["health", "--tls-cert", "missing.pem"], 2, &["cannot read missing.pem"]);
    dir.fails(&["health"], 1, &["not healthy"]);
}

/// The lines that a server logs at this level about an HTTP/2 request whose path is malformed.
async fn log_of_malformed_path(path: &str, level: &str) -> String {
    let dir = TestDir::new();
    let certificate = write_certificate(&dir);
    let server = dir.serve(&[TLS.as_slice(), &["--log-level", level]].concat());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let mut config = config.with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let socket = TcpStream::connect(server.url().replace("https://", "")).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, socket).await.unwrap();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    // `:method: GET`, `:scheme: https`, and `:path` with a literal value, in a frame of type HEADERS on stream 1.
    let length = u8::try_from(path.len()).unwrap();
    bytes.extend([0, 0, length + 4, 1, 5, 0, 0, 0, 1, 0x82, 0x87, 0x04, length]);
    bytes.extend(path.as_bytes());
    stream.write_all(&bytes).await.unwrap();
    // The stream is reset: a frame of type RST_STREAM.
    timeout(Duration::from_secs(30), async {
        let mut head = [0; 9];
        while head[3] != 3 {
            stream.read_exact(&mut head).await.unwrap();
            let mut payload = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
            stream.read_exact(&mut payload).await.unwrap();
        }
    })
    .await
    .unwrap();
    drop(stream);
    server.stop()
}

#[tokio::test]
async fn paths_of_malformed_requests_are_logged_only_for_a_named_target() {
    let log = log_of_malformed_path("/s/secret/a b", "debug").await;
    assert!(!log.contains("secret") && !log.contains("h2::") && log.contains("stopping"), "{log}");
    let log = log_of_malformed_path("/s/secret/a b", "info,h2=debug").await;
    assert!(log.contains("malformed path") && log.contains("secret"), "{log}");
    // Not even then is a share link.
    let link = format!("zarrdlink_1_{}_{}", "0".repeat(16), "a".repeat(16));
    let log = log_of_malformed_path(&format!("/{link}/a b"), "info,h2=debug").await;
    assert!(log.contains("malformed path") && log.contains("…/a b") && !log.contains("zarrdlink"), "{log}");
}
