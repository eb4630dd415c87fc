//! Redirects, tokens and certificates.

use zarrd_client::{BuildError, HttpStore, RemoteError, Token};
use zarrd_store::{ListableStore, PageRequest, ReadableStore};

use crate::scripted::scripted_server::{ScriptedServer, Step, key, problem, response, value};

#[tokio::test]
async fn redirects_are_never_followed() {
    let other = ScriptedServer::start([Step::Respond(value("x"))]).await;
    let elsewhere = format!("Location: {}/store/k", other.base);
    let server = ScriptedServer::start([
        Step::Respond(response(301, &["Location: /mount/store/k/"], "")),
        Step::Respond(response(301, &[&elsewhere], "")),
        Step::Respond(response(302, &[&elsewhere], "")),
        Step::Respond(response(307, &["Location: /mount/store/k/"], "")),
        Step::Respond(response(301, &[], "")),
        Step::Respond(response(308, &[&elsewhere], "")),
    ])
    .await;
    let store = server.builder().token(Token::parse("s3cret").unwrap()).build().unwrap();
    assert!(
        store.get(&key("k"), None).await.unwrap().is_none(),
        "a redirect to the prefix means that the key has no value"
    );
    for status in [301, 302, 307, 301] {
        let error = store.get(&key("k"), None).await.unwrap_err();
        assert!(
            matches!(error.backend_source(), Some(RemoteError::Status { status: remote, .. }) if *remote == status),
            "{error:?}"
        );
    }
    let error = store.list(PageRequest::first(1)).await.unwrap_err();
    assert!(matches!(error.backend_source(), Some(RemoteError::Status { status: 308, .. })), "{error:?}");
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn requests_have_token_and_identity_encoding() {
    let server = ScriptedServer::start(vec![Step::Respond(problem(404, "no-such-key", &[], "")); 3]).await;
    let builder = server.builder().token(Token::parse("s3cret").unwrap());
    assert!(!format!("{builder:?}").contains("s3cret"));
    let store = builder.build().unwrap();
    for _ in 0..3 {
        assert!(store.get(&key("k"), None).await.unwrap().is_none());
    }
    assert!(!format!("{store:?}").contains("s3cret"));
    assert_eq!(server.connections(), 1, "connections are reused");
    for request in server.requests() {
        assert_eq!(request.header("authorization"), Some("Bearer s3cret"));
        assert_eq!(request.header("accept-encoding"), Some("identity"));
        assert_eq!(request.header("user-agent"), Some(concat!("zarrd-client/", env!("CARGO_PKG_VERSION"))));
    }
    assert_eq!(server.store().get(&key("k"), None).await.map_err(drop).map(drop), Err(()));
    assert_eq!(server.requests()[3].header("authorization"), None);
}

#[tokio::test]
async fn missing_permission_is_an_error() {
    let server = ScriptedServer::start([
        Step::Respond(response(401, &["WWW-Authenticate: Bearer"], "")),
        Step::Respond(response(403, &[], "")),
        Step::Respond(problem(403, "forbidden", &[], r#","detail":"only reading""#)),
        Step::Respond(problem(401, "unauthorized", &["WWW-Authenticate: Bearer"], r#","detail":"it has expired""#)),
    ])
    .await;
    let store = server.store();
    assert!(matches!(
        store.head(&key("k")).await.unwrap_err().backend_source(),
        Some(RemoteError::Unauthorized { .. })
    ));
    assert!(matches!(
        store.get(&key("k"), None).await.unwrap_err().backend_source(),
        Some(RemoteError::Forbidden { .. })
    ));
    let error = store.get(&key("k"), None).await.unwrap_err();
    assert!(
        matches!(error.backend_source(), Some(RemoteError::Forbidden { detail }) if detail == "only reading"),
        "{error:?}"
    );
    let error = store.get(&key("k"), None).await.unwrap_err();
    assert!(
        matches!(error.backend_source(), Some(RemoteError::Unauthorized { detail }) if detail == "it has expired"),
        "{error:?}"
    );
}

#[tokio::test]
async fn private_certificate_authority_is_trusted() {
    let (base, pem) = tls::serve(value("over TLS")).await;
    let store = HttpStore::builder(base.clone()).certificates(pem.as_bytes()).unwrap().build().unwrap();
    assert_eq!(store.get(&key("k"), None).await.unwrap().unwrap().bytes().await.unwrap(), "over TLS");
    // Without the authority the server is not trusted; on a machine without any authorities no client can be built.
    match HttpStore::builder(base.clone()).retries(zarrd_client::Retries::none()).build() {
        Ok(store) => assert!(matches!(
            store.head(&key("k")).await.unwrap_err().backend_source(),
            Some(RemoteError::Transport(_))
        )),
        Err(error) => assert!(matches!(error, BuildError::Client(_)), "{error:?}"),
    }
    for bad in ["", "not PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let built = HttpStore::builder(base.clone()).certificates(bad.as_bytes()).and_then(|builder| builder.build());
        assert!(built.is_err(), "{bad:?}");
    }
}

/// A TLS server with a single response.
mod tls {
    use std::sync::Arc;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };
    use tokio_rustls::{
        TlsAcceptor,
        rustls::{
            ServerConfig,
            pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
        },
    };
    use zarrd_client::BaseUrl;

    /// Sends the response on every connection; returns the URL and the certificate.
    pub(super) async fn serve(response: String) -> (BaseUrl, String) {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut request = vec![0; 4096];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(response.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        (BaseUrl::parse(&base).unwrap(), certified.cert.pem())
    }
}
