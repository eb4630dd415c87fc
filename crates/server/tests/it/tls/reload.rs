//! Replaced certificates.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::sleep};
use zarrd_server::Settings;

use crate::tls::tls_server::{Certificate, TIMEOUT, TlsServer, exchange};

const REQUEST: &str = "GET /store/v HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// True if the server presents this certificate to new connections.
async fn presents(server: &TlsServer, certificate: &Certificate) -> bool {
    let stream = server.connect(&["http/1.1"]).await;
    stream.get_ref().1.peer_certificates().unwrap()[0] == certificate.der
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reload_under_load_fails_no_request() {
    let mut server = TlsServer::start(Settings::default()).await;
    server.set("v", 1000).await;
    let certificates = [Certificate::new(), Certificate::new()];
    for certificate in &certificates {
        server.trust(certificate);
    }
    let (done, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut clients = Vec::new();
    for _ in 0..3 {
        let (connector, address) = (server.connector(&["http/1.1"]), server.address);
        let load = (done.clone(), answered.clone());
        clients.push(tokio::spawn(async move {
            while !load.0.load(Ordering::Relaxed) {
                let answer = exchange(connector.clone(), address, REQUEST).await.unwrap();
                assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("xxx"), "{answer}");
                load.1.fetch_add(1, Ordering::Relaxed);
            }
        }));
        let (http2, load) = (server.http2().await, (done.clone(), answered.clone()));
        clients.push(tokio::spawn(async move {
            while !load.0.load(Ordering::Relaxed) {
                assert_eq!(http2.get("/store/v").await.unwrap().body().len(), 1000);
                load.1.fetch_add(1, Ordering::Relaxed);
                // Leaves time for the clients with a handshake for each request.
                sleep(Duration::from_millis(2)).await;
            }
        }));
    }
    for reload in 0..5 {
        sleep(Duration::from_millis(200)).await;
        server.files.replace(&certificates[reload % 2]);
        server.certificates.reload().unwrap();
        assert!(presents(&server, &certificates[reload % 2]).await);
    }
    while answered.load(Ordering::Relaxed) < 500 {
        sleep(Duration::from_millis(20)).await;
    }
    done.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
}

#[tokio::test]
async fn failed_reload_keeps_the_certificate() {
    let server = TlsServer::start(Settings::default()).await;
    server.files.replace_key(&Certificate::new().key);
    let message = server.certificates.reload().unwrap_err().to_string();
    assert!(message.contains("is not that of the certificate"), "{message}");
    server.files.replace_cert("half of a certif");
    server.certificates.reload().unwrap_err();
    assert!(server.exchange(REQUEST).await.unwrap().starts_with("HTTP/1.1 404 "));
}

#[tokio::test]
async fn changed_files_are_loaded() {
    let mut server = TlsServer::start(Settings::default()).await;
    tokio::spawn(server.certificates.clone().watch(std::future::pending));
    let new = Certificate::new();
    server.trust(&new);
    // The key follows later.
    server.files.replace_cert(&new.cert);
    sleep(Duration::from_millis(2500)).await;
    assert!(!presents(&server, &new).await);
    server.files.replace_key(&new.key);
    let changed = async {
        while !presents(&server, &new).await {
            sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, changed).await.unwrap();
}

#[tokio::test]
async fn requested_reload_does_not_wait_for_a_change() {
    let mut server = TlsServer::start(Settings::default()).await;
    let requested = Arc::new(Notify::new());
    let (certificates, request) = (server.certificates.clone(), requested.clone());
    tokio::spawn(async move { certificates.watch(|| request.notified()).await });
    let new = Certificate::new();
    server.trust(&new);
    server.files.replace(&new);
    requested.notify_one();
    let changed = async {
        while !presents(&server, &new).await {
            sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_millis(900), changed).await.unwrap();
}
