//! Crowds of clients that do not behave, beside one that does: the server's memory, and how long that one waits.

use std::{
    fmt,
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Method, StatusCode};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{
    large_commits::Latencies,
    server::{Launch, Server},
    skip::say,
};

/// The most memory that the server may have while a crowd is there, in bytes.
pub const MOST: u64 = 2 << 30;
/// The most that it may have a minute after, in bytes.
pub const MOST_LEFT: u64 = 300 << 20;

/// A crowd, and what is watched.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many clients there are at the same time.
    pub clients: usize,
    /// The keys of 1 KiB that there are to be listed.
    pub keys: usize,
    /// How long each crowd stays.
    pub stay: Duration,
    /// How long the server has afterwards to give its memory back.
    pub calm: Duration,
    /// The crowds, one after the other, each with a server of its own.
    pub kinds: Vec<Kind>,
}

/// What the clients of a crowd do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// They connect, and say nothing.
    Silent,
    /// They send a head, and not its end.
    Heads,
    /// They send a body, and not its end.
    Uploads,
    /// They ask for the largest page of keys as JSON, and read nothing.
    Keys,
    /// The same of a prefix's children.
    Children,
    /// They ask for all keys as lines, and read nothing.
    Lines,
    /// They ask for all children as HTML, and read nothing.
    Links,
    /// They ask for pages of keys, and read a little now and then.
    Slow,
    /// They ask for pages of keys, and leave at once, again and again.
    Leaving,
    /// They declare a tree whose JSON is nothing but small values.
    Documents,
}

/// What was seen of one crowd. Memory is in bytes.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Which crowd.
    pub kind: Kind,
    /// The most memory.
    pub peak: u64,
    /// What was left of it.
    pub left: u64,
    /// How long a small GET of somebody else took.
    pub gets: Latencies,
    /// How often that was not answered 200.
    pub refused: usize,
    /// The permits that are not back: a line of `/metrics` each.
    pub missing: Vec<String>,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Silent,
        Self::Heads,
        Self::Uploads,
        Self::Keys,
        Self::Children,
        Self::Lines,
        Self::Links,
        Self::Slow,
        Self::Leaving,
        Self::Documents,
    ];

    fn request(self) -> Vec<u8> {
        let get = |target: &str, accept: &str| {
            format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n").into_bytes()
        };
        match self {
            Self::Silent => Vec::new(),
            Self::Heads => b"GET /store/small HTTP/1.1\r\nHost: localhost\r\nX: ".to_vec(),
            Self::Uploads => {
                let head = "PUT /store/upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\r\n";
                [head.as_bytes(), &[7; 512 << 10]].concat()
            }
            Self::Keys | Self::Slow | Self::Leaving => get("/store/long/?list=keys&limit=10000", "application/json"),
            Self::Children => get("/store/long/?limit=10000", "application/json"),
            Self::Lines => get("/store/long/?list=keys", "application/x-ndjson"),
            Self::Links => get("/store/long/", "text/html"),
            Self::Documents => {
                let body = ["[", &"{\"\":0},".repeat(60_000), "0]"].concat();
                let length = body.len();
                let head = "PUT /node/tree HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
                format!("{head}Content-Length: {length}\r\n\r\n{body}").into_bytes()
            }
        }
    }
}

/// Runs the crowds of a plan against a new store, and says of each what was seen.
pub async fn run(plan: &Plan, dir: &Path) -> Vec<Seen> {
    allow_connections(plan.clients as u64 + 200);
    fill(plan.keys, dir).await;
    let mut seen = Vec::new();
    for kind in &plan.kinds {
        let one = meet(*kind, plan, dir).await;
        say(&one);
        seen.push(one);
    }
    seen
}

/// The name of one of the long keys, which are the children of one prefix.
pub fn long_key(number: usize) -> String {
    format!("long/{number:06}-{}", "k".repeat(1000))
}

async fn fill(keys: usize, dir: &Path) {
    let server = Launch::sled(dir).start();
    let numbers = stream::iter(0..keys);
    let put = async |number| {
        let answer = server.put(&format!("/store/{}", long_key(number)), Bytes::from_static(b"1")).await;
        assert_eq!(answer.status(), StatusCode::CREATED);
    };
    numbers.for_each_concurrent(32, put).await;
    server.put("/store/small", vec![1; 1000]).await.error_for_status().expect("it is set");
    server.stop();
}

async fn meet(kind: Kind, plan: &Plan, dir: &Path) -> Seen {
    let server = Arc::new(Launch::sled(dir).start());
    let over = Arc::new(AtomicBool::new(false));
    let crowd = {
        let (server, over, clients) = (server.clone(), over.clone(), plan.clients);
        thread::spawn(move || gather(kind, clients, &server, &over))
    };
    let (gets, refused) = behave(&server, plan.stay).await;
    over.store(true, Ordering::Relaxed);
    crowd.join().expect("the crowd goes");
    let peak = server.peak_memory();
    let begun = Instant::now();
    while server.memory() > MOST_LEFT && begun.elapsed() < plan.calm {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let left = server.memory();
    let missing = missing(&server).await;
    drop(server);
    Seen { kind, peak, left, gets, refused, missing }
}

/// The crowd, until it is over.
fn gather(kind: Kind, clients: usize, server: &Server, over: &AtomicBool) {
    let request = kind.request();
    let mut connections: Vec<TcpStream> = (0..clients).filter_map(|_| approach(server, &request)).collect();
    let mut scratch = [0; 64];
    while !over.load(Ordering::Relaxed) {
        for connection in &mut connections {
            if over.load(Ordering::Relaxed) {
                break;
            }
            match kind {
                // What is there is taken; where nothing is, nobody waits.
                Kind::Slow => drop(connection.read(&mut scratch)),
                Kind::Leaving => {
                    // It may be gone already.
                    let _ = connection.shutdown(Shutdown::Both);
                    if let Some(next) = approach(server, &request) {
                        *connection = next;
                    }
                }
                _ => {}
            }
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// One client, unless it is turned away at once.
fn approach(server: &Server, request: &[u8]) -> Option<TcpStream> {
    let mut connection = TcpStream::connect(server.address()).ok()?;
    connection.set_write_timeout(Some(Duration::from_millis(500))).ok()?;
    // The server may have answered without reading to the end.
    let _ = connection.write_all(request);
    connection.set_nonblocking(true).ok()?;
    Some(connection)
}

/// Somebody who wants a small value again and again, each time by a new connection.
async fn behave(server: &Server, stay: Duration) -> (Latencies, usize) {
    let client = reqwest::Client::builder().pool_max_idle_per_host(0).build().expect("a client");
    let (mut gets, mut refused) = (Latencies::default(), 0);
    let end = Instant::now() + stay;
    while Instant::now() < end {
        let begun = Instant::now();
        let answer = client.get(server.url("/store/small")).timeout(Duration::from_secs(30)).send().await;
        let whole = match answer {
            Ok(answer) if answer.status() == StatusCode::OK => answer.bytes().await.is_ok(),
            _ => false,
        };
        gets.add(begun.elapsed());
        refused += usize::from(!whole);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    (gets, refused)
}

/// The lines of `/metrics` that say that something is still taken.
async fn missing(server: &Server) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let answer = server.request(Method::GET, "/metrics").send().await.expect("the metrics are always there");
        let text = answer.text().await.expect("text");
        let shared = |line: &str| line.starts_with("zarrd_memory_") || line.starts_with("zarrd_decoding_threads_");
        let taken = |line: &&str| {
            let (name, amount) = line.rsplit_once(' ').unwrap_or_default();
            shared(line) && (name.contains("_taken") || name.ends_with("_waiting")) && amount != "0"
        };
        let missing: Vec<_> = text.lines().filter(taken).map(str::to_owned).collect();
        if missing.is_empty() || begun.elapsed() > Duration::from_secs(20) {
            return missing;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Lets this process have so many connections; the server has a limit of its own.
fn allow_connections(most: u64) {
    let files = getrlimit(Resource::Nofile);
    if files.current.is_none_or(|current| current >= most) {
        return;
    }
    assert!(files.maximum.is_none_or(|maximum| maximum >= most), "{most} files may not be open here (ulimit -Hn)");
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..files }).expect("the limit can be raised");
}

impl Seen {
    /// Whether memory stayed within its bounds, and all that was taken came back.
    pub fn is_within_limits(&self) -> bool {
        self.peak <= MOST && self.left <= MOST_LEFT && self.missing.is_empty()
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, gets, refused, missing, .. } = self;
        let kind = format!("{kind:?}");
        let [peak, left] = [self.peak, self.left].map(|bytes| bytes >> 20);
        write!(
            f,
            "{kind:10} {peak:5} MiB at the peak, {left:4} left; GET p50 / p99 / most {gets} ms, {refused} refused"
        )?;
        missing.iter().try_for_each(|line| write!(f, "\n  not back: {line}"))
    }
}
