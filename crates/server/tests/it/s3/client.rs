//! A client that signs its requests, which shares no code with the server.

use std::{sync::Arc, time::SystemTime};

use axum::{Router, body::Body};
use hmac::{Hmac, KeyInit, Mac};
use http::{Method, Request, StatusCode, header::HOST};
use sha2::{Digest, Sha256};
use tower::ServiceExt;
use zarrd_server::{App, Bucket, BucketNames, Domain, S3Settings, Settings, Surface, surface_router};
use zarrd_store::MemoryStore;

use crate::common::{
    TestResponse, TestServer, read,
    tokens::{ServerWithTokens, create_token, new_token},
};

/// A server with both surfaces over one store.
pub(super) struct Site {
    pub(super) api: TestServer,
    s3: Router,
}

/// A key pair.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) access: String,
    pub(super) secret: String,
}

impl Keys {
    /// The keys of a new token with rights.
    pub(super) fn of_token(server: &ServerWithTokens, grants: &[&str]) -> Self {
        let (id, token) = create_token(&server.directory, new_token(grants));
        Self { access: id.to_string(), secret: token.rsplit('_').next().unwrap().to_owned() }
    }
}

/// A request that may be signed.
pub(super) struct S3Request {
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

pub(super) const HOST_NAME: &str = "localhost:9000";

impl Site {
    pub(super) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(super) fn with(settings: Settings) -> Self {
        let store = Arc::new(MemoryStore::new());
        let app = App::new(store.clone(), settings);
        let api = TestServer { router: zarrd_server::router(app.clone()), store };
        Self { api, s3: surface_router(app, Surface::S3) }
    }

    /// A site of a server with tokens.
    pub(super) fn of(server: &ServerWithTokens) -> Self {
        let (router, store) = (server.server.router.clone(), server.server.store.clone());
        Self { api: TestServer { router, store }, s3: surface_router(server.app.clone(), Surface::S3) }
    }

    /// A site whose store is also the bucket `all`, and whose buckets are names below `s3.test`.
    pub(super) fn with_names() -> Self {
        let domain: Domain = "s3.test".parse().unwrap();
        let root: Bucket = "all".parse().unwrap();
        let s3 = S3Settings { domain: Some(domain), buckets: BucketNames::new(Some(root)) };
        Self::with(Settings { s3, ..Settings::default() })
    }

    pub(super) async fn send(&self, request: S3Request) -> TestResponse {
        let mut builder = Request::builder().method(request.method).uri(&request.target);
        if !request.headers.iter().any(|(name, _)| name == "host") {
            builder = builder.header(HOST, HOST_NAME);
        }
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let request = builder.body(Body::from(request.body)).unwrap();
        read(self.s3.clone().oneshot(request).await.unwrap()).await
    }

    /// Sends an unsigned request.
    pub(super) async fn plain(&self, method: Method, target: &str, body: &str) -> TestResponse {
        self.send(S3Request::new(method, target, body)).await
    }
}

impl S3Request {
    pub(super) fn new(method: Method, target: &str, body: &str) -> Self {
        Self { method, target: target.to_owned(), headers: Vec::new(), body: body.as_bytes().to_vec() }
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Signs the request at a time; all of its headers are covered.
    pub(super) fn signed_at(mut self, keys: &Keys, time: &str) -> Self {
        let has_hash = self.headers.iter().any(|(name, _)| name == "x-amz-content-sha256");
        if !has_hash {
            let hash = hex::encode(Sha256::digest(&self.body));
            self = self.header("x-amz-content-sha256", &hash);
        }
        self = self.header("x-amz-date", time);
        if !self.headers.iter().any(|(name, _)| name == "host") {
            self = self.header("host", HOST_NAME);
        }
        self.headers.sort();
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        let signed = names.join(";");
        let lines: String = self.headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let mut parameters: Vec<String> = query
            .split('&')
            .filter(|parameter| !parameter.is_empty())
            .map(|parameter| parameter.replace("/", "%2F"))
            .map(|parameter| if parameter.contains('=') { parameter } else { format!("{parameter}=") })
            .collect();
        parameters.sort();
        let hash = self.headers.iter().find(|(name, _)| name == "x-amz-content-sha256").unwrap().1.clone();
        let canonical = format!("{}\n{path}\n{}\n{lines}\n{signed}\n{hash}", self.method, parameters.join("&"));
        let scope = format!("{}/us-east-1/s3/aws4_request", day(time));
        let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex::encode(Sha256::digest(canonical)));
        let signature = hex::encode(mac(&signing_key(keys, time), &text));
        let line = format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={signed}, Signature={signature}",
            keys.access
        );
        self.header("authorization", &line)
    }

    pub(super) fn signed(self, keys: &Keys) -> Self {
        self.signed_at(keys, &now())
    }
}

pub(super) fn signing_key(keys: &Keys, time: &str) -> Vec<u8> {
    let first = format!("AWS4{}", keys.secret).into_bytes();
    [day(time), "us-east-1", "s3", "aws4_request"].iter().fold(first, |key, part| mac(&key, part))
}

/// The day of a time.
pub(super) fn day(time: &str) -> &str {
    time.split('T').next().unwrap()
}

pub(super) fn mac(key: &[u8], text: &str) -> Vec<u8> {
    Hmac::<Sha256>::new_from_slice(key).unwrap().chain_update(text).finalize().into_bytes().to_vec()
}

/// This moment, as signatures have it.
pub(super) fn now() -> String {
    at(SystemTime::now())
}

pub(super) fn at(time: SystemTime) -> String {
    let text = zarrd_wire::time::rfc3339(time);
    format!("{}Z", text.split('.').next().unwrap().replace(['-', ':'], ""))
}

/// The keys that an open server accepts.
pub(super) fn open_keys() -> Keys {
    Keys { access: "zarrd".into(), secret: "zarrd".into() }
}

/// The code of an error.
#[track_caller]
pub(super) fn code(answer: &TestResponse) -> (StatusCode, String) {
    let text = answer.text();
    let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>")).map_or("", |(code, _)| code);
    (answer.status, code.to_owned())
}

/// An error with a status and a code.
pub(super) fn refused(status: u16, code: &str) -> (StatusCode, String) {
    (StatusCode::from_u16(status).unwrap(), code.to_owned())
}
