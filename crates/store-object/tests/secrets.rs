//! Credentials appear in no error, no log and no `Debug`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::{
    io::{self, Write},
    sync::Arc,
};

use parking_lot::Mutex;
use tracing_subscriber::fmt::MakeWriter;
use zarrd_store::{BackendErrorKind, ListableStore, PageRequest, ReadableStore};
use zarrd_store_object::{BucketStore, Options};

use self::common::{Dialect, Fault, Request, SECRET, Server, TOKEN, drain, key, open, options, texts, variables};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// Azure's key, and a signature in a URL.
const KEY: &str = "c2VjcmV0LWtleS1vZi1henVyZQ==";
const SIGNATURE: &str = "sigOfAzureSAS0123456789";

fn assert_clean(text: &str) {
    for secret in [SECRET, TOKEN, KEY, SIGNATURE, "AKIAIOSFODNN7EXAMPLE"] {
        let at = text.lines().find(|line| line.contains(secret));
        assert_eq!(at, None, "{secret}");
    }
}

/// Faults whose answers repeat what they can.
fn faults() -> Vec<Fault> {
    let body = format!(
        "<Error><Code>InvalidToken</Code><Message>{TOKEN}</Message><Token-0>{TOKEN}</Token-0><AWSAccessKeyId>AKIAIOSFODNN7EXAMPLE</AWSAccessKeyId><StringToSign>{SIGNATURE}</StringToSign></Error>"
    );
    let mut faults: Vec<_> =
        [301, 400, 401, 403, 404, 412, 416, 500, 503].map(|status| Fault::Answer(status, vec![], body.clone())).into();
    faults.extend([
        Fault::Lost,
        Fault::Stalled,
        Fault::Broken(1),
        Fault::StalledAfter(1),
        Fault::Without("ETag"),
        Fault::Answer(200, vec![], body.clone()),
        Fault::Answer(200, vec![("ETag", "\"x\"".to_owned())], body),
        Fault::With("Last-Modified", TOKEN.to_owned()),
        Fault::With("Content-Range", TOKEN.to_owned()),
        Fault::Answer(302, vec![("Location", format!("http://127.0.0.1:1/{SIGNATURE}"))], String::new()),
    ]);
    faults
}

async fn provoke(store: &BucketStore) -> String {
    let mut text = format!("{store:?}");
    for range in [None, zarrd_store::ByteRange::bounded(1, 3).ok(), zarrd_store::ByteRange::last(2).ok()] {
        match store.get(&key("a"), range).await {
            Ok(Some(value)) => {
                if let Err(error) = drain(value).await.1 {
                    text.push_str(&texts(&error));
                }
            }
            Ok(None) => {}
            Err(error) => text.push_str(&texts(&error)),
        }
    }
    if let Err(error) = store.head(&key("a")).await {
        text.push_str(&texts(&error));
    }
    if let Err(error) = store.list(PageRequest::first(1)).await {
        text.push_str(&texts(&error));
    }
    text
}

#[tokio::test]
async fn no_error_and_no_log_has_a_credential() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_writer(log.clone()).finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    tracing::callsite::rebuild_interest_cache();
    let mut errors = String::new();
    for url in ["s3://b", "az://b"] {
        let dialect = if url.starts_with("az") { Dialect::Azure } else { Dialect::S3 };
        let server = Server::start(dialect).await;
        server.put("a", "0123456789");
        let mut variables = variables(&server);
        variables.retain(|(name, _)| name != "AZURE_SKIP_SIGNATURE");
        let sas = format!("sv=2023-11-03&sig={SIGNATURE}");
        variables.push(("AZURE_STORAGE_SAS_KEY".to_owned(), sas));
        let mut options = Options::with_variables(variables);
        options.retries = 1;
        options.read_timeout = std::time::Duration::from_millis(100);
        assert_clean(&format!("{options:?}"));
        let store = BucketStore::open(&url.parse().unwrap(), options.clone()).await.unwrap();
        for fault in faults() {
            server.on_request(move |_| Some(fault.clone()));
            errors.push_str(&provoke(&store).await);
            if let Err(error) = BucketStore::open(&url.parse().unwrap(), options.clone()).await {
                errors.push_str(&texts(&error));
            }
        }
        // The requests did have credentials.
        let request = server.requests().pop().unwrap();
        let sent = format!("{request:?}");
        assert!(sent.contains(TOKEN) || sent.contains(SIGNATURE), "{sent}");
    }
    for needed in ["InvalidToken", "403", "s3://b/a", "az://b/a"] {
        assert!(errors.contains(needed), "{needed}");
    }
    assert_clean(&errors);
    let log = String::from_utf8(log.0.lock().clone()).unwrap();
    assert!(log.contains("retrying a request"), "the log is empty");
    assert_clean(&log);
}

/// The session token and the signature of the URL would go along, and the other server's bytes would be the value.
#[tokio::test]
async fn a_redirect_is_an_error_and_reaches_no_other_server() {
    for (url, status) in
        ["s3://b/p", "gs://b/p", "az://b/p"].into_iter().flat_map(|url| [301, 302, 303, 307, 308].map(|it| (url, it)))
    {
        let dialect = if url.starts_with("az") { Dialect::Azure } else { Dialect::S3 };
        let (server, other) = (Server::start(dialect).await, Server::start(dialect).await);
        for path in ["a", "p/a"] {
            server.put(path, "value");
            other.put(path, "other");
        }
        let mut variables = variables(&server);
        variables.retain(|(name, _)| name != "AZURE_SKIP_SIGNATURE");
        let sas = format!("sv=2023-11-03&sig={SIGNATURE}");
        variables.push(("AZURE_STORAGE_SAS_KEY".to_owned(), sas));
        let options = Options::with_variables(variables);
        let store = BucketStore::open(&url.parse().unwrap(), options.clone()).await.unwrap();
        for host in [other.url(), other.url().replace("127.0.0.1", "localhost")] {
            let to = move |request: &Request| format!("{host}{}", request.path);
            server.on_request(move |request| {
                Some(Fault::Answer(status, vec![("Location", to(request))], "<Error/>".to_owned()))
            });
            let ranges = [None, zarrd_store::ByteRange::bounded(1, 3).ok(), zarrd_store::ByteRange::last(2).ok()];
            for range in ranges {
                let error = store.get(&key("a"), range).await.unwrap_err();
                assert_eq!(error.backend_kind(), Some(BackendErrorKind::Internal), "{url} {status}");
                assert_eq!(error.failed_at(), Some("a"), "{url} {status}");
                assert!(texts(&error).contains("the region or endpoint is wrong"), "{error:?}");
            }
            assert!(store.head(&key("a")).await.is_err(), "{url} {status}");
            assert!(store.list(PageRequest::first(1)).await.is_err(), "{url} {status}");
            assert!(BucketStore::open(&url.parse().unwrap(), options.clone()).await.is_err(), "{url} {status}");
        }
        assert_eq!(other.methods(), [""; 0], "{url} {status}");
    }
}

#[tokio::test]
async fn variables_that_do_not_configure_a_bucket_are_reported_without_their_secrets() {
    let server = Server::start(Dialect::S3).await;
    let with = |name: &str, value: &str| {
        let mut all = variables(&server);
        all.retain(|(other, _)| other != name && other != "GOOGLE_SKIP_SIGNATURE" && other != "AZURE_SKIP_SIGNATURE");
        all.push((name.to_owned(), value.to_owned()));
        Options::with_variables(all)
    };
    for (url, name, value) in [
        ("gs://b", "GOOGLE_SERVICE_ACCOUNT_KEY", SECRET),
        ("gs://b", "GOOGLE_SERVICE_ACCOUNT_KEY", &format!("{{\"private_key\": \"{SECRET}\"}}")),
        ("az://b", "AZURE_STORAGE_ACCOUNT_KEY", &format!("{SECRET}!")),
        ("az://b", "AZURE_STORAGE_SAS_KEY", SIGNATURE),
        ("s3://b", "AWS_S3_EXPRESS", SECRET),
        ("s3://b", "AWS_ALLOW_HTTP", "maybe"),
        ("s3://b", "AWS_TIMEOUT", "soon"),
    ] {
        let error = BucketStore::open(&url.parse().unwrap(), with(name, value)).await.unwrap_err();
        assert_clean(&texts(&error));
        assert!(error.to_string().contains(url), "{error}");
    }
}

#[tokio::test]
async fn variables_may_set_what_options_set() {
    let server = Server::start(Dialect::S3).await;
    server.on_request(|_| Some(Fault::Stalled));
    let mut all = variables(&server);
    all.push(("AWS_TIMEOUT".to_owned(), "300ms".to_owned()));
    let mut options = Options::with_variables(all);
    options.retries = 0;
    let begin = std::time::Instant::now();
    BucketStore::open(&"s3://b".parse().unwrap(), options).await.unwrap_err();
    assert!(begin.elapsed().as_secs() < 10, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_that_names_the_bucket() {
    let server = Server::start(Dialect::S3).await;
    let mut options = options(&server);
    options.retries = 1;
    drop(server);
    let error = BucketStore::open(&"s3://b/p".parse().unwrap(), options).await.unwrap_err();
    let texts = texts(&error);
    assert!(texts.contains("s3://b/p/") && texts.contains("no connection could be established"), "{texts}");
    let server = Server::start(Dialect::S3).await;
    assert!(open(&server, "s3://b").await.is_ok());
}

#[tokio::test]
async fn credentials_that_cannot_be_obtained_are_an_error_and_not_the_absence_of_objects() {
    let server = Server::start(Dialect::S3).await;
    for status in [404, 403, 500] {
        server.on_request(move |_| Some(Fault::Answer(status, vec![], TOKEN.to_owned())));
        let mut all = variables(&server);
        all.retain(|(name, _)| !name.contains("KEY") && !name.contains("TOKEN"));
        all.push(("AWS_METADATA_ENDPOINT".to_owned(), server.url()));
        let mut options = Options::with_variables(all);
        options.retries = 0;
        let error = BucketStore::open(&"s3://b?absent=403".parse().unwrap(), options).await.unwrap_err();
        assert_clean(&texts(&error));
        assert!(error.to_string().contains("credentials"), "{error}");
    }
}
