//! The server: connections, requests, and faults.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinHandle,
};

use super::answers::{Dialect, answer};

/// A fault of the server, in place of an answer.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Closes the connection without an answer.
    Lost,
    /// Never answers.
    Stalled,
    /// Answers with this status, these headers and this body.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// Closes the connection after this many bytes of the body.
    Broken(usize),
    /// Sends this many bytes of the body, and then nothing.
    StalledAfter(usize),
    /// Leaves out a header.
    Without(&'static str),
    /// Replaces a header.
    With(&'static str, String),
    /// Sends a version id in place of the ETag.
    Versioned(&'static str),
    /// Waits before it answers.
    Slow(Duration),
    /// Waits until the semaphore is closed.
    Held(Arc<Semaphore>),
    /// Ignores a header of the request.
    Ignoring(&'static str),
    /// Sends a body without a length that never ends.
    Endless,
    /// Does what is requested, and closes the connection without an answer.
    Unanswered,
    /// Does what is requested, and answers with this status.
    Misreported(u16),
    /// Closes the connection without an answer, and does what is requested later.
    Late(Duration),
    /// Does what is requested twice, and answers the second time.
    Twice,
    /// Does what is requested, answers, and does it again later.
    Again(Duration),
}

#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) bytes: Bytes,
    pub(crate) etag: String,
    pub(crate) modified: SystemTime,
    pub(crate) metadata: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The decoded path.
    pub(crate) path: String,
    pub(crate) query: HashMap<String, String>,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Bytes,
}

/// An answer; the body is sent only if the method is not HEAD.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
}

pub(crate) type Objects = BTreeMap<String, Object>;

/// The content of the one bucket, all of which is under one lock.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    pub(crate) objects: Objects,
    /// The parts of uploads, by their ids.
    pub(crate) uploads: BTreeMap<String, Upload>,
    /// All changes that were made, in their order.
    pub(crate) history: Vec<Change>,
    pub(crate) flaws: Flaws,
    counter: u64,
}

/// An upload in parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Upload {
    pub(crate) parts: BTreeMap<String, Bytes>,
    pub(crate) metadata: BTreeMap<String, String>,
}

/// A change of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) name: String,
    /// The new value; `None` if the object was deleted.
    pub(crate) value: Option<Bytes>,
    /// The entity tag of the object before.
    pub(crate) before: Option<String>,
    /// The entity tag of the object after.
    pub(crate) after: Option<String>,
    pub(crate) metadata: BTreeMap<String, String>,
}

/// Differences of a service from what it has to do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flaws {
    pub(crate) ignores_create_only: bool,
    pub(crate) ignores_if_match: bool,
    pub(crate) refuses_conditions: bool,
    /// Conditions are checked some time before the write.
    pub(crate) checks_before: bool,
    pub(crate) loses_metadata: bool,
    pub(crate) forbids_puts: bool,
    pub(crate) forbids_gets: bool,
    pub(crate) forbids_deletes: bool,
    pub(crate) forbids_listings: bool,
    /// Deletes succeed and do nothing.
    pub(crate) ignores_deletes: bool,
    /// An entity tag is a hash of the value, so that equal values have equal ones.
    pub(crate) hashes: bool,
}

impl Bucket {
    /// Sets an object, with another ETag than ever before.
    pub(crate) fn put(&mut self, name: &str, bytes: Bytes, metadata: BTreeMap<String, String>) -> String {
        self.counter += 1;
        let number = match self.flaws.hashes {
            true => u128::from(std::hash::BuildHasher::hash_one(
                &std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default(),
                &bytes,
            )),
            false => u128::from(self.counter),
        };
        let etag = format!("{number:032x}");
        let metadata = if self.flaws.loses_metadata { BTreeMap::new() } else { metadata };
        let (value, after) = (Some(bytes.clone()), Some(etag.clone()));
        let object = Object { bytes, etag: etag.clone(), modified: SystemTime::now(), metadata: metadata.clone() };
        let before = self.objects.insert(name.to_owned(), object).map(|object| object.etag);
        self.history.push(Change { name: name.to_owned(), value, before, after, metadata });
        etag
    }

    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let Some(object) = self.objects.remove(name) else { return false };
        let (before, metadata) = (Some(object.etag), BTreeMap::new());
        self.history.push(Change { name: name.to_owned(), value: None, before, after: None, metadata });
        true
    }
}

type Rule = Box<dyn FnMut(&Request) -> Option<Fault> + Send>;

struct State {
    dialect: Dialect,
    bucket: Mutex<Bucket>,
    rule: Mutex<Rule>,
    requests: Mutex<Vec<Request>>,
    /// The dates of the next answers, in place of those that they have.
    dates: Mutex<VecDeque<String>>,
}

/// A server of objects.
pub(crate) struct Server {
    address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(dialect: Dialect) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            dialect,
            bucket: Mutex::default(),
            rule: Mutex::new(Box::new(|_| None)),
            requests: Mutex::default(),
            dates: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { address, state, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets an object of the bucket, with another ETag than ever before.
    pub(crate) fn put(&self, name: &str, bytes: impl Into<Bytes>) {
        self.state.bucket.lock().put(name, bytes.into(), BTreeMap::new());
    }

    pub(crate) fn remove(&self, name: &str) {
        self.state.bucket.lock().remove(name);
    }

    /// The content of the bucket, which no request reads or changes meanwhile.
    pub(crate) fn bucket(&self) -> parking_lot::MutexGuard<'_, Bucket> {
        self.state.bucket.lock()
    }

    /// The names of all objects.
    pub(crate) fn names(&self) -> Vec<String> {
        self.state.bucket.lock().objects.keys().cloned().collect()
    }

    /// Asks for a fault at each request, before it is answered.
    pub(crate) fn on_request(&self, rule: impl FnMut(&Request) -> Option<Fault> + Send + 'static) {
        *self.state.rule.lock() = Box::new(rule);
    }

    /// Makes these faults, one at each request.
    pub(crate) fn faults(&self, faults: impl IntoIterator<Item = Fault>) {
        let mut faults = faults.into_iter().collect::<Vec<_>>().into_iter();
        self.on_request(move |_| faults.next());
    }

    /// The same server, to be changed within a rule.
    pub(crate) fn handle(&self) -> impl Fn(&str, Bytes) + Send + 'static {
        let state = Arc::clone(&self.state);
        move |name, bytes| drop(state.bucket.lock().put(name, bytes, BTreeMap::new()))
    }

    /// Sends these dates, one with each answer.
    pub(crate) fn dates(&self, dates: impl IntoIterator<Item = String>) {
        self.state.dates.lock().extend(dates);
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().clone()
    }

    /// The methods of the requests; `LIST` for a listing.
    pub(crate) fn methods(&self) -> Vec<String> {
        let method = |request: &Request| if request.is_list() { "LIST".to_owned() } else { request.method.clone() };
        self.state.requests.lock().iter().map(method).collect()
    }

    pub(crate) fn forget(&self) {
        self.state.requests.lock().clear();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Request {
    pub(crate) fn is_list(&self) -> bool {
        self.query.contains_key("list-type") || self.query.get("comp").is_some_and(|comp| comp == "list")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    fn parse(head: &str) -> Self {
        let mut lines = head.split("\r\n");
        let mut first = lines.next().unwrap().split(' ');
        let (method, target) = (first.next().unwrap(), first.next().unwrap());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let query = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let headers = lines.filter_map(|line| line.split_once(": "));
        Self {
            method: method.to_owned(),
            path: decode(path),
            query: query.map(|(name, value)| (decode(name), decode(&value.replace('+', " ")))).collect(),
            headers: headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect(),
            body: Bytes::new(),
        }
    }
}

fn decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned()
}

async fn serve(mut stream: TcpStream, state: Arc<State>) {
    stream.set_nodelay(true).unwrap();
    let mut buffer = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at;
            }
            match stream.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        };
        let head = String::from_utf8(buffer.drain(..end + 4).take(end).collect()).unwrap();
        let mut request = Request::parse(&head);
        let len = request.header("content-length").map_or(0, |len| len.parse().unwrap());
        while buffer.len() < len {
            match stream.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        request.body = buffer.drain(..len).collect::<Vec<_>>().into();
        state.requests.lock().push(request.clone());
        let fault = (state.rule.lock())(&request);
        match &fault {
            Some(Fault::Lost) => return,
            Some(Fault::Stalled) => std::future::pending().await,
            Some(Fault::Slow(time)) => tokio::time::sleep(*time).await,
            Some(Fault::Held(gate)) => drop(gate.acquire().await),
            Some(Fault::Ignoring(name)) => drop(request.headers.remove(*name)),
            Some(Fault::Late(time)) => return later(&state, request, *time),
            Some(Fault::Twice) => drop(answer(state.dialect, &request, &state.bucket).await),
            _ => {}
        }
        let mut answer = match &fault {
            Some(Fault::Answer(status, headers, body)) => {
                Answer { status: *status, headers: headers.clone(), body: body.clone().into() }
            }
            _ => answer(state.dialect, &request, &state.bucket).await,
        };
        match &fault {
            Some(Fault::Unanswered) => return,
            Some(Fault::Misreported(status)) => {
                answer = Answer { status: *status, headers: Vec::new(), body: Bytes::new() };
            }
            Some(Fault::Again(time)) => later(&state, request.clone(), *time),
            Some(Fault::Versioned(id)) => {
                answer.headers.retain(|(other, _)| *other != "ETag");
                answer.headers.push(("x-amz-version-id", (*id).to_owned()));
            }
            Some(Fault::Without(name)) => answer.headers.retain(|(other, _)| other != name),
            Some(Fault::With(name, value)) => {
                answer.headers.retain(|(other, _)| other != name);
                answer.headers.push((*name, value.clone()));
            }
            _ => {}
        }
        if let Some(date) = state.dates.lock().pop_front() {
            answer.headers.retain(|(name, _)| *name != "Date");
            answer.headers.push(("Date", date));
        }
        if send(&mut stream, &request, &answer, fault.as_ref()).await.is_err() {
            return;
        }
    }
}

/// Does what is requested after a time.
fn later(state: &Arc<State>, request: Request, time: Duration) {
    let state = Arc::clone(state);
    tokio::spawn(async move {
        tokio::time::sleep(time).await;
        answer(state.dialect, &request, &state.bucket).await;
    });
}

async fn send(
    stream: &mut TcpStream,
    request: &Request,
    answer: &Answer,
    fault: Option<&Fault>,
) -> std::io::Result<()> {
    let length = match fault {
        Some(Fault::Endless) => "Transfer-Encoding: chunked".to_owned(),
        _ => format!("Content-Length: {}", answer.body.len()),
    };
    let mut head = format!("HTTP/1.1 {} Status\r\n{length}\r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    if request.method == "HEAD" {
        return Ok(());
    }
    match fault {
        Some(Fault::Broken(len)) => {
            stream.write_all(answer.body.get(..*len).unwrap_or(&answer.body)).await?;
            stream.flush().await?;
            Err(std::io::ErrorKind::ConnectionAborted.into())
        }
        Some(Fault::StalledAfter(len)) => {
            stream.write_all(answer.body.get(..*len).unwrap_or(&answer.body)).await?;
            std::future::pending().await
        }
        Some(Fault::Endless) => loop {
            stream.write_all(b"4\r\nmore\r\n").await?;
        },
        _ => stream.write_all(&answer.body).await,
    }
}
