//! A bucket that takes its time: a server that speaks S3, whose answers begin after a given latency.
//!
//! It runs in this process, holds its objects in memory, and takes little of a processor, so that servers that read
//! from it can be compared by the number of requests that they have under way. It fails if it is asked to.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    net::{self, SocketAddr},
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
};
use xxhash_rust::xxh3::xxh3_128;

use crate::bucket::{ACCESS_KEY, S3, SECRET};

/// A running server; stopped on drop.
#[derive(Debug)]
pub struct DistantBucket {
    address: SocketAddr,
    state: Arc<State>,
    runtime: Option<Runtime>,
}

/// The answer to a request for an object, in place of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A refusal with this status and code, and these headers.
    Refusal(u16, &'static str, &'static str),
    /// A page for people.
    Html,
    /// A body that ends before its length.
    Short,
    /// None: the connection is closed.
    Lost,
}

#[derive(Debug)]
struct State {
    objects: BTreeMap<String, Object>,
    latency: Duration,
    requests: AtomicU64,
    /// The bytes of objects that were sent.
    sent: AtomicU64,
    /// Objects that are not answered with their bytes.
    faults: Mutex<BTreeMap<String, Fault>>,
}

#[derive(Debug)]
struct Object {
    bytes: Bytes,
    tag: String,
}

/// A request for an object or a listing.
struct Request<'a> {
    method: &'a str,
    name: String,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, &'a str>,
}

/// An answer; its body is not sent to a HEAD.
struct Answer {
    status: u16,
    headers: String,
    body: Bytes,
}

impl DistantBucket {
    /// Starts a server with these objects by name, in a bucket called `bucket`.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(objects: BTreeMap<String, Bytes>, latency: Duration) -> Self {
        let tagged = |bytes: Bytes| Object { tag: format!("\"{:032x}\"", xxh3_128(&bytes)), bytes };
        let objects = objects.into_iter().map(|(name, bytes)| (name, tagged(bytes))).collect();
        let state = Arc::new(State {
            objects,
            latency,
            requests: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            faults: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let listener = net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        listener.set_nonblocking(true).expect("a socket that does not block");
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).expect("a listener of this runtime");
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                // A connection ends when its client has gone.
                tokio::spawn(async move { drop(serve(stream, &state).await) });
            }
        });
        Self { address, state, runtime: Some(runtime) }
    }

    /// Its interface, which accepts any key.
    pub fn s3(&self) -> S3 {
        let [access_key, secret] = [ACCESS_KEY, SECRET].map(str::to_owned);
        S3 { endpoint: format!("http://{}", self.address), access_key, secret }
    }

    /// The number of requests so far.
    pub fn requests(&self) -> u64 {
        self.state.requests.load(Ordering::Relaxed)
    }

    /// The number of bytes of objects that were sent so far, without documents.
    pub fn sent(&self) -> u64 {
        self.state.sent.load(Ordering::Relaxed)
    }

    /// Answers requests for an object with a fault from now on.
    pub fn fail(&self, name: &str, fault: Fault) {
        self.state.faults.lock().expect("no holder panics").insert(name.to_owned(), fault);
    }
}

impl Drop for DistantBucket {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn serve(mut stream: TcpStream, state: &State) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    loop {
        let end = loop {
            match buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None if stream.read_buf(&mut buffer).await? == 0 => return Ok(()),
                None => {}
            }
        };
        let head: Vec<u8> = buffer.drain(..end).collect();
        let request = Request::parse(std::str::from_utf8(&head).expect("a head in ASCII"));
        state.requests.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(state.latency).await;
        let fault = state.faults.lock().expect("no holder panics").get(&request.name).cloned();
        let Answer { status, headers, body } = match &fault {
            Some(Fault::Refusal(status, code, headers)) => {
                Answer { headers: (*headers).to_owned(), ..Answer::refusal(*status, code) }
            }
            Some(Fault::Html) => Answer::html(),
            Some(Fault::Lost) => return Ok(()),
            Some(Fault::Short) | None => state.answer(&request),
        };
        let length = body.len();
        let sent_length = length.saturating_sub(usize::from(fault == Some(Fault::Short)));
        let mut sent = format!("HTTP/1.1 {status} Status\r\nContent-Length: {length}\r\n{headers}\r\n").into_bytes();
        if request.method != "HEAD" {
            if !request.name.is_empty() && !request.name.ends_with(".json") {
                state.sent.fetch_add(sent_length as u64, Ordering::Relaxed);
            }
            sent.extend_from_slice(&body[..sent_length]);
        }
        stream.write_all(&sent).await?;
        if sent_length < length && request.method != "HEAD" {
            return Ok(());
        }
    }
}

impl<'a> Request<'a> {
    fn parse(head: &'a str) -> Self {
        let mut lines = head.split("\r\n");
        let mut first = lines.next().unwrap_or_default().split(' ');
        let (method, target) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let headers = lines.filter_map(|line| line.split_once(": "));
        Self {
            method,
            name: decoded(path.trim_start_matches("/bucket").trim_start_matches('/')),
            query: query.map(|(name, value)| (decoded(name), decoded(value))).collect(),
            headers: headers.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect(),
        }
    }
}

/// Decodes percent-encoded text.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes: Vec<u8> = parts.next().unwrap_or_default().bytes().collect();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).expect("two digits follow a percent sign");
        bytes.push(u8::from_str_radix(digits, 16).expect("digits are hexadecimal"));
        bytes.extend(rest.bytes());
    }
    String::from_utf8(bytes).expect("names are UTF-8")
}

impl State {
    fn answer(&self, request: &Request<'_>) -> Answer {
        if request.name.is_empty() {
            return self.list(&request.query);
        }
        let Some(object) = self.objects.get(&request.name) else { return Answer::refusal(404, "NoSuchKey") };
        if request.headers.get("if-match").is_some_and(|tag| *tag != object.tag) {
            return Answer::refusal(412, "PreconditionFailed");
        }
        let headers = format!("ETag: {}\r\nLast-Modified: Mon, 23 Nov 2026 12:00:00 GMT\r\n", object.tag);
        if request.headers.get("if-none-match").is_some_and(|tag| *tag == object.tag) {
            return Answer { status: 304, headers, body: Bytes::new() };
        }
        let size = object.bytes.len();
        match request.headers.get("range").map(|text| range(text, size)) {
            None => Answer { status: 200, headers, body: object.bytes.clone() },
            Some(None) => Answer::refusal(416, "InvalidRange"),
            Some(Some(Range { start, end })) => Answer {
                status: 206,
                headers: format!("{headers}Content-Range: bytes {start}-{}/{size}\r\n", end - 1),
                body: object.bytes.slice(start..end),
            },
        }
    }

    /// A page of names, and of prefixes up to the delimiter.
    fn list(&self, query: &BTreeMap<String, String>) -> Answer {
        let text = |name: &str| query.get(name).map_or("", String::as_str);
        let (prefix, delimiter) = (text("prefix"), text("delimiter"));
        let after = text("continuation-token").max(text("start-after"));
        let limit = text("max-keys").parse().unwrap_or(1000);
        let (mut found, mut prefixes, mut next) = (String::new(), BTreeSet::new(), None);
        let (mut count, mut last) = (0, "");
        for (name, object) in &self.objects {
            let Some(rest) = name.strip_prefix(prefix).filter(|_| name.as_str() > after) else { continue };
            let rolled = (!delimiter.is_empty()).then(|| rest.split_once(delimiter)).flatten();
            let rolled = rolled.map(|(part, _)| format!("{prefix}{part}{delimiter}"));
            if rolled.as_ref().is_none_or(|rolled| !prefixes.contains(rolled)) {
                if count == limit {
                    next = Some(last);
                    break;
                }
                count += 1;
            }
            last = name;
            match rolled {
                Some(rolled) => drop(prefixes.insert(rolled)),
                None => {
                    let (tag, size) = (&object.tag, object.bytes.len());
                    let _ = write!(
                        found,
                        "<Contents><Key>{name}</Key><Size>{size}</Size><ETag>{tag}</ETag>\
                         <LastModified>2026-11-23T12:00:00.000Z</LastModified></Contents>"
                    );
                }
            }
        }
        for prefix in prefixes {
            let _ = write!(found, "<CommonPrefixes><Prefix>{prefix}</Prefix></CommonPrefixes>");
        }
        let _ = write!(found, "<IsTruncated>{}</IsTruncated>", next.is_some());
        if let Some(next) = next {
            let _ = write!(found, "<NextContinuationToken>{next}</NextContinuationToken>");
        }
        let body = format!("<ListBucketResult>{found}</ListBucketResult>").into();
        Answer { status: 200, headers: "Content-Type: application/xml\r\n".to_owned(), body }
    }
}

impl Answer {
    fn html() -> Self {
        let body = "<!DOCTYPE html><html><body>Please log in</body></html>".into();
        Self { status: 200, headers: "Content-Type: text/html\r\n".to_owned(), body }
    }

    fn refusal(status: u16, code: &str) -> Self {
        Self { status, headers: String::new(), body: format!("<Error><Code>{code}</Code></Error>").into() }
    }
}

/// The positions of a range, `bytes=1-2`, `bytes=1-` or `bytes=-2`; `None` if there are none.
fn range(text: &str, size: usize) -> Option<Range<usize>> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first.parse::<usize>().ok(), last.parse::<usize>().ok()) {
        (Some(first), Some(last)) => first..size.min(last + 1),
        (Some(first), None) => first..size,
        (None, last) => size.saturating_sub(last?)..size,
    };
    (!range.is_empty()).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_http() {
        for (text, expected) in [
            ("bytes=1-2", Some(1..3)),
            ("bytes=8-100", Some(8..10)),
            ("bytes=7-", Some(7..10)),
            ("bytes=-3", Some(7..10)),
            ("bytes=-30", Some(0..10)),
            ("bytes=10-", None),
        ] {
            assert_eq!(range(text, 10), expected, "{text}");
        }
    }

    #[test]
    fn names_are_decoded() {
        let request = Request::parse("GET /bucket/a%20b/%C3%A4?x=%2F HTTP/1.1\r\nRange: bytes=1-\r\n\r\n");
        assert_eq!((request.name.as_str(), request.query["x"].as_str()), ("a b/ä", "/"));
        assert_eq!(request.headers["range"], "bytes=1-");
    }
}
