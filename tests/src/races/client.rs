//! Requests to the server, and the classification of its responses.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method};
use reqwest::Client;
use serde_json::Value;

use super::{
    layout::Element,
    model::{Body, Image},
};

/// The response timeout.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// The problems of requests that may have been executed in part.
const PARTLY: [&str; 3] = ["partly-written", "changed-while-written", "outcome-unknown"];

/// A client of the current server, or of several in turns, which reuses connections.
#[derive(Clone, Debug)]
pub(crate) struct ServerClient {
    urls: Arc<[String]>,
    /// The number of requests.
    sent: Arc<AtomicUsize>,
    http: Client,
    reads: Reads,
}

/// The state of which answers may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    /// The state that the server takes for current.
    Any,
    /// The current one, although the metadata of buckets are cached for some time: no writer may rely on that.
    Current,
}

/// The outcome of a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Executed.
    Done(Response),
    /// Rejected with this status, for a reason that a race may cause.
    Rejected(u16),
    /// Stored data cannot be decoded.
    Undecodable(String),
    /// A response that no race explains.
    Unexpected(String),
    /// No response.
    Lost(String),
    /// Executed for some chunks, or for none: a store that is written key by key says so.
    Partly,
}

/// The response to an executed request.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    headers: HeaderMap,
    body: Bytes,
}

impl ServerClient {
    /// A client of the servers at these URLs.
    pub(crate) fn of(urls: Vec<String>) -> Self {
        let http = Client::builder().timeout(RESPONSE_TIMEOUT).build().expect("a client");
        Self { urls: urls.into(), sent: Arc::default(), http, reads: Reads::Any }
    }

    /// The same client, whose reads are of the current state.
    pub(crate) fn with_current_reads(self) -> Self {
        Self { reads: Reads::Current, ..self }
    }

    /// Sends a request and waits for the response.
    pub(crate) async fn exchange(&self, method: Method, target: &str, media_type: &str, body: Vec<u8>) -> Reply {
        let next = self.sent.fetch_add(1, Ordering::Relaxed) % self.urls.len();
        let request = self.http.request(method.clone(), format!("{}{target}", self.urls[next]));
        let request = match self.reads {
            Reads::Current if method == Method::GET => request.header("cache-control", "no-cache"),
            _ => request,
        };
        let answered = async {
            let answer = request.header("content-type", media_type).body(body).send().await?;
            let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
            Ok::<_, reqwest::Error>((status, Response { headers, body: answer.bytes().await? }))
        };
        match answered.await {
            Ok((status, answer)) => Reply::classify(status, answer, &format!("{method} {target}")),
            Err(error) => Reply::Lost(format!("{method} {target}: {error:?}")),
        }
    }

    /// Sends a request with a JSON body.
    pub(crate) async fn send_json(&self, method: Method, target: &str, body: &Value) -> Reply {
        self.exchange(method, target, "application/json", body.to_string().into_bytes()).await
    }

    /// Sends a request with an empty body.
    pub(crate) async fn send_empty(&self, method: Method, target: &str) -> Reply {
        self.exchange(method, target, "application/octet-stream", Vec::new()).await
    }

    /// Sends a request with elements.
    pub(crate) async fn send_elements(&self, method: Method, target: &str, body: &Body) -> Reply {
        match body {
            Body::Scalar(value) => {
                self.exchange(method, target, "application/json", value.to_string().into_bytes()).await
            }
            Body::Raw(bytes) => self.exchange(method, target, "application/octet-stream", bytes.clone()).await,
        }
    }

    /// The JSON document of a key, if it exists.
    pub(crate) async fn document(&self, key: &str) -> Option<Value> {
        match self.send_empty(Method::GET, &format!("/store/{key}")).await {
            Reply::Done(answer) => serde_json::from_slice(&answer.body).ok(),
            _ => None,
        }
    }

    /// All keys below a prefix.
    pub(crate) async fn keys(&self, prefix: &str) -> Result<Vec<String>, Reply> {
        let (mut keys, mut cursor) = (Vec::new(), String::new());
        loop {
            let target = format!("/store/{prefix}?list=keys&limit=10000{cursor}");
            let page = match self.send_empty(Method::GET, &target).await {
                Reply::Done(answer) => serde_json::from_slice::<Value>(&answer.body).unwrap_or_default(),
                other => return Err(other),
            };
            let listed = page["keys"].as_array().into_iter().flatten();
            keys.extend(listed.filter_map(|key| Some(key.as_str()?.to_owned())));
            match page["cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(keys),
            }
        }
    }
}

impl Reply {
    fn classify(status: u16, answer: Response, what: &str) -> Self {
        let text = || format!("{what}: {status} {}", String::from_utf8_lossy(&answer.body));
        match status {
            200 | 201 | 204 => Self::Done(answer),
            409 | 500 | 503 if PARTLY.iter().any(|kind| text().contains(kind)) => Self::Partly,
            400 | 404 | 409 | 412 | 413 | 429 | 503 => Self::Rejected(status),
            500 if ["undecodable-chunk", "corrupt-value"].iter().any(|kind| text().contains(kind)) => {
                Self::Undecodable(text())
            }
            _ => Self::Unexpected(text()),
        }
    }
}

impl Response {
    /// The shape in the response header.
    pub(crate) fn shape(&self) -> Option<Vec<u64>> {
        let shape = self.headers.get("zarr-shape")?.to_str().ok()?;
        shape.split(',').map(|extent| extent.trim().parse().ok()).collect()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The array with these raw elements.
    pub(crate) fn image(&self) -> Option<Image> {
        let element = match self.headers.get("zarr-data-type")?.to_str().ok()? {
            "uint8" => Element::U8,
            "uint16" => Element::U16,
            _ => return None,
        };
        let values = element.read(&self.body)?.into_iter().map(Some).collect();
        Some(Image { element, shape: self.shape()?, values })
    }
}
