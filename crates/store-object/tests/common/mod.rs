//! A service of objects on this machine, with faults.

#![allow(dead_code, unused_imports, reason = "each test uses some of it")]

mod answers;
mod changes;
mod server;

use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use zarrd_store::{GetResult, Key, ListableStore, PageRequest, Prefix, ReadableStore, StoreError};
use zarrd_store_object::{BucketStore, OpenError, Options};

pub(crate) use self::{
    answers::Dialect,
    server::{Change, Fault, Flaws, Request, Server},
};

pub(crate) const SECRET: &str = "wJalrXUtnFEMIsecretK7MDENG";
pub(crate) const TOKEN: &str = "FwoGZXIvYXdzEBsessionTOKEN42";

/// The variables that lead to a server.
pub(crate) fn variables(server: &Server) -> Vec<(String, String)> {
    let url = server.url();
    let endpoint = format!("{url}/account");
    // The library does not skip signatures of writes.
    let google = r#"{"disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": ""}"#;
    [
        ("AWS_ENDPOINT_URL", url.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_SESSION_TOKEN", TOKEN),
        ("GOOGLE_BASE_URL", &url),
        ("GOOGLE_SKIP_SIGNATURE", "true"),
        ("GOOGLE_SERVICE_ACCOUNT_KEY", google),
        ("GOOGLE_ALLOW_HTTP", "true"),
        ("AZURE_STORAGE_ENDPOINT", &endpoint),
        ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
        ("AZURE_SKIP_SIGNATURE", "true"),
        ("AZURE_ALLOW_HTTP", "true"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect()
}

/// Options that lead to a server and do not wait for long.
pub(crate) fn options(server: &Server) -> Options {
    let mut options = Options::with_variables(variables(server));
    options.connect_timeout = Duration::from_secs(2);
    options.read_timeout = Duration::from_millis(500);
    options.deadline = Duration::from_secs(5);
    options.retries = 3;
    options
}

/// A server and a store that reads it.
pub(crate) struct Fixture {
    pub(crate) server: Server,
    pub(crate) store: BucketStore,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::open("s3://b/p").await
    }

    pub(crate) async fn open(url: &str) -> Self {
        let dialect = if url.starts_with("az") { Dialect::Azure } else { Dialect::S3 };
        let server = Server::start(dialect).await;
        let store = open(&server, url).await.unwrap();
        server.forget();
        Self { server, store }
    }

    pub(crate) fn put(&self, key: &str, bytes: impl Into<Bytes>) {
        self.server.put(&format!("p/{key}"), bytes);
    }

    pub(crate) fn put_names(&self, keys: &[&str]) {
        keys.iter().for_each(|key| self.put(key, (*key).to_owned()));
    }

    pub(crate) async fn get(&self, at: &str) -> Result<Option<GetResult>, StoreError> {
        within(self.store.get(&key(at), None)).await
    }

    /// The bytes of a value; `None` if it is absent.
    pub(crate) async fn read(&self, at: &str) -> Result<Option<Bytes>, StoreError> {
        match self.get(at).await? {
            Some(value) => within(value.bytes()).await.map(Some),
            None => Ok(None),
        }
    }

    pub(crate) async fn keys(&self, prefix: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        let (prefix, mut page, mut keys) = (Prefix::parse(prefix).unwrap(), PageRequest::first(limit), Vec::new());
        loop {
            let found = within(self.store.list_prefix(&prefix, page)).await?;
            keys.extend(found.keys.iter().map(|entry| entry.key.to_string()));
            let Some(cursor) = found.cursor else { return Ok(keys) };
            page = PageRequest::after(limit, cursor);
        }
    }

    pub(crate) async fn children(&self, prefix: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        let (prefix, mut page, mut children) = (Prefix::parse(prefix).unwrap(), PageRequest::first(limit), Vec::new());
        loop {
            let found = within(self.store.list_dir(&prefix, page)).await?;
            let mut names: Vec<_> = found.keys.iter().map(|entry| entry.key.to_string()).collect();
            names.extend(found.prefixes.iter().map(ToString::to_string));
            names.sort_unstable();
            children.extend(names);
            let Some(cursor) = found.cursor else { return Ok(children) };
            page = PageRequest::after(limit, cursor);
        }
    }
}

pub(crate) async fn open(server: &Server, url: &str) -> Result<BucketStore, OpenError> {
    within(BucketStore::open(&url.parse().unwrap(), options(server))).await
}

pub(crate) fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

/// Waits for a future that must not take long.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future).await.unwrap_or_else(|_| panic!("an operation blocks"))
}

/// The texts of an error and its sources, as users and logs see them.
pub(crate) fn texts(error: &(dyn std::error::Error + 'static)) -> String {
    let mut texts = format!("{error:?} {error:#?}");
    let mut cause = Some(error);
    while let Some(error) = cause {
        texts = format!("{texts}\n{error}\n{error:?}");
        cause = error.source();
    }
    texts
}

/// Reads a stream until it ends or fails.
pub(crate) async fn drain(mut value: GetResult) -> (Vec<u8>, Result<(), StoreError>) {
    let mut bytes = Vec::new();
    loop {
        match within(value.stream.try_next()).await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => return (bytes, Ok(())),
            Err(error) => return (bytes, Err(error)),
        }
    }
}
