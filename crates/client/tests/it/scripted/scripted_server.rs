//! A server that responds to each request with the next step of a script, and records the requests.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};
use zarrd_client::{ArrayClient, BaseUrl, ClientBuilder, HttpStore, RemoteError, Retries, Timeouts, TransportError};
use zarrd_store::{Key, StoreError};

/// The ETag of the value in most scripts.
pub(crate) const ETAG: &str = "\"0000000000000000000000000000002a\"";

/// Reaction to one request.
#[derive(Clone)]
pub(crate) enum Step {
    /// Responds, and keeps the connection open.
    Respond(String),
    /// Sends a complete or incomplete response, and closes the connection.
    RespondAndClose(String),
    /// Closes the connection without reading the body.
    Close,
    /// Never responds.
    Hang,
    /// Responds with a chunked body that does not end.
    RespondEndlessly(String),
}

/// A recorded request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The method and the target.
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct ScriptedServer {
    pub(crate) base: BaseUrl,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    steps: Mutex<VecDeque<Step>>,
    requests: Mutex<Vec<Request>>,
    connections: AtomicUsize,
}

impl ScriptedServer {
    /// Starts a server. After the last step, connections are closed without a response.
    pub(crate) async fn start(steps: impl IntoIterator<Item = Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = BaseUrl::parse(&format!("http://{}/mount", listener.local_addr().unwrap())).unwrap();
        let state = Arc::new(State { steps: Mutex::new(steps.into_iter().collect()), ..State::default() });
        let serving = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serving.connections.fetch_add(1, Ordering::SeqCst);
                let state = Arc::clone(&serving);
                tokio::spawn(async move { serve(stream, &state).await });
            }
        });
        Self { base, state }
    }

    /// A store client with short timeouts and delays.
    pub(crate) fn store(&self) -> HttpStore {
        self.builder().build().unwrap()
    }

    /// An array client with short timeouts and delays.
    pub(crate) fn arrays(&self) -> ArrayClient {
        self.store().connection().into()
    }

    pub(crate) fn builder(&self) -> ClientBuilder<HttpStore> {
        let timeouts = Timeouts { idle: Duration::from_secs(5), ..Timeouts::default() };
        let retries = Retries { max_retries: 2, initial_delay: Duration::from_millis(1), ..Retries::default() };
        HttpStore::builder(self.base.clone()).timeouts(timeouts).retries(retries)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// A response with header lines and a body with a Content-Length.
pub(crate) fn response(status: u16, headers: &[&str], body: &str) -> String {
    let length = format!("Content-Length: {}", body.len());
    format!("{}\r\n{body}", head(status, &[headers, &[&length]].concat()))
}

/// A response head, without the empty line at its end.
pub(crate) fn head(status: u16, headers: &[&str]) -> String {
    let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    format!("HTTP/1.1 {status} Whatever\r\nX-Request-Id: req-7\r\n{lines}")
}

/// The response head of a value, without its length.
pub(crate) fn value_head(status: u16, headers: &[&str]) -> String {
    let (etag, modified) = (format!("ETag: {ETAG}"), "Zarr-Modified: 2026-11-21T06:28:08.123Z");
    head(status, &[&[etag.as_str(), modified], headers].concat())
}

/// A complete value.
pub(crate) fn value(body: &str) -> String {
    format!("{}Content-Length: {}\r\n\r\n{body}", value_head(200, &[]), body.len())
}

/// The beginning of a value of `size` bytes.
pub(crate) fn incomplete_value(size: usize, body: &str) -> String {
    format!("{}Content-Length: {size}\r\n\r\n{body}", value_head(200, &[]))
}

/// A partial response.
pub(crate) fn partial_value(content_range: &str, body: &str) -> String {
    let range = format!("Content-Range: {content_range}");
    format!("{}Content-Length: {}\r\n\r\n{body}", value_head(206, &[&range]), body.len())
}

/// A problem document.
pub(crate) fn problem(status: u16, slug: &str, headers: &[&str], members: &str) -> String {
    let body = format!(r#"{{"type":"https://zarrd.dev/problems/{slug}","title":"t","status":{status}{members}}}"#);
    response(status, &[headers, &["Content-Type: application/problem+json"]].concat(), &body)
}

async fn serve(stream: TcpStream, state: &State) {
    let mut stream = BufReader::new(stream);
    while let Some(mut request) = read_head(&mut stream).await {
        let step = state.steps.lock().unwrap().pop_front().unwrap_or(Step::Close);
        if !matches!(step, Step::Close) {
            request.body = read_body(&mut stream, &request).await;
        }
        state.requests.lock().unwrap().push(request);
        match step {
            Step::Respond(text) => {
                if stream.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
            }
            Step::RespondAndClose(text) => {
                let _ = stream.write_all(text.as_bytes()).await;
                return;
            }
            Step::Close => return,
            Step::Hang => std::future::pending().await,
            Step::RespondEndlessly(text) => {
                let _ = stream.write_all(text.as_bytes()).await;
                let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
                while stream.write_all(chunk.as_bytes()).await.is_ok() {}
                return;
            }
        }
    }
}

async fn read_head(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let line = lines.first()?.trim_end_matches(" HTTP/1.1").to_owned();
    let headers = lines[1..].iter().filter_map(|line| line.split_once(": "));
    Some(Request { line, headers: headers.map(|(n, v)| (n.to_owned(), v.to_owned())).collect(), body: Vec::new() })
}

/// Reads the body up to its end or that of the connection.
async fn read_body(stream: &mut BufReader<TcpStream>, request: &Request) -> Vec<u8> {
    let mut body = Vec::new();
    if let Some(length) = request.header("content-length") {
        let _ = stream.take(length.parse().unwrap()).read_to_end(&mut body).await;
        return body;
    }
    if request.header("transfer-encoding").is_none() {
        return body;
    }
    loop {
        let mut size = String::new();
        let Ok(1..) = stream.read_line(&mut size).await else { return body };
        let size = u64::from_str_radix(size.trim(), 16).unwrap();
        let (mut chunk, mut end) = (Vec::new(), String::new());
        let _ = stream.take(size).read_to_end(&mut chunk).await;
        let _ = stream.read_line(&mut end).await;
        body.extend(chunk);
        if size == 0 {
            return body;
        }
    }
}

/// Returns the source of a transport error.
pub(crate) fn transport_error(error: StoreError) -> TransportError {
    match error {
        StoreError::Backend { source, .. } => match *source.downcast().unwrap() {
            RemoteError::Transport(error) => error,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

pub(crate) fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}
