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
pub(crate) struct Site {
    pub(crate) api: TestServer,
    s3: Router,
}

/// A key pair.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) access: String,
    pub(crate) secret: String,
}

impl Keys {
    /// The keys of a new token with rights.
    pub(crate) fn of_token(server: &ServerWithTokens, grants: &[&str]) -> Self {
        Self::of_text(&create_token(&server.directory, new_token(grants)).1)
    }

    /// The keys in the text of a token.
    pub(crate) fn of_text(token: &str) -> Self {
        let (start, secret) = token.rsplit_once('_').unwrap_or_default();
        let access = start.rsplit('_').next().filter(|access| !access.is_empty()).unwrap_or("none");
        Self { access: access.to_owned(), secret: secret.to_owned() }
    }
}

/// A request that may be signed.
pub(crate) struct S3Request {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

pub(crate) const HOST_NAME: &str = "localhost:9000";

impl Site {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let store = Arc::new(MemoryStore::new());
        let app = App::new(store.clone(), settings);
        let api = TestServer { router: zarrd_server::router(app.clone()), store };
        Self { api, s3: surface_router(app, Surface::S3) }
    }

    /// A site of a server with tokens.
    pub(crate) fn of(server: &ServerWithTokens) -> Self {
        let (router, store) = (server.server.router.clone(), server.server.store.clone());
        Self { api: TestServer { router, store }, s3: surface_router(server.app.clone(), Surface::S3) }
    }

    /// A site whose store is also the bucket `all`, and whose buckets are names below `s3.test`.
    pub(crate) fn with_names() -> Self {
        let domain: Domain = "s3.test".parse().unwrap();
        let root: Bucket = "all".parse().unwrap();
        let s3 = S3Settings { domain: Some(domain), buckets: BucketNames::new(Some(root)), ..S3Settings::default() };
        Self::with(Settings { s3, ..Settings::default() })
    }

    pub(crate) async fn send(&self, request: S3Request) -> TestResponse {
        request.send(self.s3.clone()).await
    }

    /// Sends an unsigned request.
    pub(crate) async fn plain(&self, method: Method, target: &str, body: &str) -> TestResponse {
        self.send(S3Request::new(method, target, body)).await
    }
}

impl S3Request {
    pub(crate) fn new(method: Method, target: &str, body: &str) -> Self {
        Self { method, target: target.to_owned(), headers: Vec::new(), body: body.as_bytes().to_vec() }
    }

    /// Sends the request to a surface.
    pub(crate) async fn send(self, s3: Router) -> TestResponse {
        let mut builder = Request::builder().method(self.method).uri(&self.target);
        if !self.headers.iter().any(|(name, _)| name == "host") {
            builder = builder.header(HOST, HOST_NAME);
        }
        for (name, value) in &self.headers {
            builder = builder.header(name, value);
        }
        read(s3.oneshot(builder.body(Body::from(self.body)).unwrap()).await.unwrap()).await
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Signs the request at a time; all of its headers are covered.
    pub(crate) fn signed_at(mut self, keys: &Keys, time: &str) -> Self {
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
        let query = canonical_query(query);
        let hash = self.headers.iter().find(|(name, _)| name == "x-amz-content-sha256").unwrap().1.clone();
        let canonical = format!("{}\n{path}\n{query}\n{lines}\n{signed}\n{hash}", self.method);
        let signature = signature(keys, time, &canonical);
        let scope = format!("{}/us-east-1/s3/aws4_request", day(time));
        let line = format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={signed}, Signature={signature}",
            keys.access
        );
        self.header("authorization", &line)
    }

    /// Signs the request in its query; all of its headers are covered.
    pub(crate) fn presigned(mut self, keys: &Keys) -> Self {
        let time = now();
        self = self.header("host", HOST_NAME);
        self.headers.sort();
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        let lines: String = self.headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let credential = format!("{}/{}/us-east-1/s3/aws4_request", keys.access, day(&time)).replace('/', "%2F");
        let query = canonical_query(&format!(
            "{query}&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={credential}&X-Amz-Date={time}&X-Amz-Expires=600\
             &X-Amz-SignedHeaders={}",
            names.join("%3B")
        ));
        let head = format!("{}\n{path}\n{query}\n{lines}\n{}", self.method, names.join(";"));
        let signature = signature(keys, &time, &format!("{head}\nUNSIGNED-PAYLOAD"));
        self.target = format!("{path}?{query}&X-Amz-Signature={signature}");
        self
    }

    pub(crate) fn signed(self, keys: &Keys) -> Self {
        self.signed_at(keys, &now())
    }
}

fn canonical_query(query: &str) -> String {
    let mut parameters: Vec<String> = query
        .split('&')
        .filter(|parameter| !parameter.is_empty())
        .map(|parameter| parameter.replace('/', "%2F"))
        .map(|parameter| if parameter.contains('=') { parameter } else { format!("{parameter}=") })
        .collect();
    parameters.sort();
    parameters.join("&")
}

/// The signature of a canonical request.
fn signature(keys: &Keys, time: &str, canonical: &str) -> String {
    let scope = format!("{}/us-east-1/s3/aws4_request", day(time));
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex::encode(Sha256::digest(canonical)));
    hex::encode(mac(&signing_key(keys, time), &text))
}

pub(crate) fn signing_key(keys: &Keys, time: &str) -> Vec<u8> {
    let first = format!("AWS4{}", keys.secret).into_bytes();
    [day(time), "us-east-1", "s3", "aws4_request"].iter().fold(first, |key, part| mac(&key, part))
}

/// The day of a time.
pub(crate) fn day(time: &str) -> &str {
    time.split('T').next().unwrap()
}

pub(crate) fn mac(key: &[u8], text: &str) -> Vec<u8> {
    Hmac::<Sha256>::new_from_slice(key).unwrap().chain_update(text).finalize().into_bytes().to_vec()
}

/// This moment, as signatures have it.
pub(crate) fn now() -> String {
    at(SystemTime::now())
}

pub(crate) fn at(time: SystemTime) -> String {
    let text = zarrd_wire::time::rfc3339(time);
    format!("{}Z", text.split('.').next().unwrap().replace(['-', ':'], ""))
}

/// The keys that an open server accepts.
pub(crate) fn open_keys() -> Keys {
    Keys { access: "zarrd".into(), secret: "zarrd".into() }
}

/// The code of an error.
#[track_caller]
pub(crate) fn code(answer: &TestResponse) -> (StatusCode, String) {
    let text = answer.text();
    let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>")).map_or("", |(code, _)| code);
    (answer.status, code.to_owned())
}

/// An error with a status and a code.
pub(crate) fn refused(status: u16, code: &str) -> (StatusCode, String) {
    (StatusCode::from_u16(status).unwrap(), code.to_owned())
}
