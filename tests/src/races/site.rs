//! Requests to the server, and the meaning of their answers.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use reqwest::Client;
use serde_json::Value;

use super::{
    layout::Element,
    model::{Body, Image},
};
use crate::server::Server;

/// The longest that an answer may take.
const DEADLINE: Duration = Duration::from_secs(60);

/// The server as it is now, with connections that are used again.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    url: String,
    http: Client,
}

/// The outcome of a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// It was done.
    Done(Answer),
    /// It was not done, for a reason that a race may have; with the status.
    Refused(u16),
    /// Something that is stored cannot be decoded.
    Undecodable(String),
    /// An answer that no race explains.
    Unexpected(String),
    /// No answer came.
    Lost(String),
}

/// The answer to a request that was done.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    headers: HeaderMap,
    body: Bytes,
}

impl Site {
    pub(crate) fn of(server: &Server) -> Self {
        let http = Client::builder().timeout(DEADLINE).build().expect("a client");
        Self { url: server.url(""), http }
    }

    /// Asks, and waits for the answer.
    pub(crate) async fn ask(&self, method: Method, target: &str, media_type: &str, body: Vec<u8>) -> Reply {
        let request = self.http.request(method.clone(), format!("{}{target}", self.url));
        let answered = async {
            let answer = request.header("content-type", media_type).body(body).send().await?;
            let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
            Ok::<_, reqwest::Error>((status, Answer { headers, body: answer.bytes().await? }))
        };
        match answered.await {
            Ok((status, answer)) => Reply::judge(status, answer, &format!("{method} {target}")),
            Err(error) => Reply::Lost(format!("{method} {target}: {error:?}")),
        }
    }

    /// Asks with JSON.
    pub(crate) async fn ask_json(&self, method: Method, target: &str, body: &Value) -> Reply {
        self.ask(method, target, "application/json", body.to_string().into_bytes()).await
    }

    /// Asks with nothing.
    pub(crate) async fn ask_bare(&self, method: Method, target: &str) -> Reply {
        self.ask(method, target, "application/octet-stream", Vec::new()).await
    }

    /// Asks with elements.
    pub(crate) async fn ask_elements(&self, method: Method, target: &str, body: &Body) -> Reply {
        match body {
            Body::Scalar(value) => self.ask(method, target, "application/json", value.to_string().into_bytes()).await,
            Body::Raw(bytes) => self.ask(method, target, "application/octet-stream", bytes.clone()).await,
        }
    }

    /// All keys below a prefix.
    pub(crate) async fn keys(&self, prefix: &str) -> Result<Vec<String>, Reply> {
        let (mut keys, mut cursor) = (Vec::new(), String::new());
        loop {
            let target = format!("/store/{prefix}?list=keys&limit=10000{cursor}");
            let page = match self.ask_bare(Method::GET, &target).await {
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
    fn judge(status: u16, answer: Answer, what: &str) -> Self {
        let text = || format!("{what}: {status} {}", String::from_utf8_lossy(&answer.body));
        match status {
            200 | 201 | 204 => Self::Done(answer),
            400 | 404 | 409 | 412 | 413 | 429 | 503 => Self::Refused(status),
            500 if ["undecodable-chunk", "corrupt-value"].iter().any(|kind| text().contains(kind)) => {
                Self::Undecodable(text())
            }
            _ => Self::Unexpected(text()),
        }
    }
}

impl Answer {
    /// The shape in the answer's header.
    pub(crate) fn shape(&self) -> Option<Vec<u64>> {
        let shape = self.headers.get("zarr-shape")?.to_str().ok()?;
        shape.split(',').map(|extent| extent.trim().parse().ok()).collect()
    }

    /// The array whose raw elements these are.
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
