//! Crowds of clients that do not behave, beside one that does: the server's memory, and how long that one waits.

mod kinds;
mod load;
mod stranger;

use std::{
    fmt,
    path::{Path, PathBuf},
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
use serde_json::{Value, json};

use crate::{
    server::{Launch, Server},
    skip::say,
};
pub use kinds::{Crowd, CrowdError, Kind, Manner};
use load::Load;
pub use load::gather;
pub use stranger::{Stranger, Waited};

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
    pub crowds: Vec<Crowd>,
    /// The command `crowds`, to be the crowd in a process that gives way to others; `None` for threads of this one.
    pub program: Option<PathBuf>,
}

/// What was seen of one crowd. Memory is in bytes.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Which crowd.
    pub crowd: Crowd,
    /// The status that one client alone is answered with; `None` where it waits for none.
    pub status: Option<u16>,
    /// The most memory.
    pub peak: u64,
    /// What was left of it.
    pub left: u64,
    /// How long the requests of somebody else took.
    pub stranger: Stranger,
    /// The permits that are not back: a line of `/metrics` each.
    pub missing: Vec<String>,
}

/// Runs the crowds of a plan against a new store, and says of each what was seen.
pub async fn run(plan: &Plan, dir: &Path) -> Vec<Seen> {
    fill(plan, dir).await;
    let mut seen = Vec::new();
    for crowd in &plan.crowds {
        let one = meet(*crowd, plan, dir).await;
        say(&one);
        seen.push(one);
    }
    seen
}

/// The name of one of the long keys, which are the children of one prefix.
pub fn long_key(number: usize) -> String {
    format!("long/{number:06}-{}", "k".repeat(1000))
}

impl Plan {
    fn has_nodes(&self) -> bool {
        self.crowds.iter().any(|crowd| crowd.kind.needs_nodes())
    }
}

async fn fill(plan: &Plan, dir: &Path) {
    let server = Launch::sled(dir).start();
    let numbers = stream::iter(0..plan.keys);
    let put = async |number| {
        let answer = server.put(&format!("/store/{}", long_key(number)), Bytes::from_static(b"1")).await;
        assert_eq!(answer.status(), StatusCode::CREATED);
    };
    numbers.for_each_concurrent(32, put).await;
    server.put("/store/small", vec![1; 1000]).await.error_for_status().expect("it is set");
    if plan.has_nodes() {
        fill_nodes(&server).await;
    }
    server.stop();
}

fn array(shape: &[u64], chunk: &[u64], codecs: &Value) -> Value {
    json!({"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8", "fill_value": 0, "attributes": {},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default"}, "codecs": codecs})
}

/// The trees and arrays that crowds ask for.
async fn fill_nodes(server: &Server) {
    let bytes = json!({"name": "bytes"});
    let zstd = json!([bytes, {"name": "zstd", "configuration": {"level": 1, "checksum": false}}]);
    let reversed: Vec<u64> = (0..25).rev().collect();
    let between = json!({"name": "numcodecs.delta", "configuration": {"dtype": "|u1"}});
    let turn = json!({"name": "transpose", "configuration": {"order": reversed}});
    let shards = json!([{"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 64], "codecs": [bytes],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}}]);
    let pattern: Vec<u8> = (0..64_u64 << 20).map(|place| (place.wrapping_mul(place >> 7) >> 3) as u8 & 31).collect();
    let turned = format!("/store/crowd/turned/c/{}", ["0"; 25].join("/"));
    let nodes = [
        ("/node/crowd/trees", kinds::groups(2000)),
        ("/node/crowd/rows", array(&[64 << 10, 1024], &[1024, 1024], &zstd).to_string()),
        ("/node/crowd/chunk", array(&[64 << 20], &[64 << 20], &zstd).to_string()),
        ("/node/crowd/turned", array(&[2; 25], &[2; 25], &json!([turn, between, turn, bytes])).to_string()),
        ("/node/crowd/shards", array(&[8, 16 << 20], &[1, 1 << 20], &shards).to_string()),
        ("/node/others/one", array(&[64 << 10], &[64 << 10], &zstd).to_string()),
    ];
    let json = nodes.map(|(target, document)| (target.to_owned(), document.into_bytes())).to_vec();
    let values = vec![
        ("/array/crowd/rows".to_owned(), pattern.clone()),
        ("/array/crowd/chunk".to_owned(), pattern.clone()),
        (turned, pattern[..32 << 20].to_vec()),
        ("/array/others/one".to_owned(), pattern[..64 << 10].to_vec()),
    ];
    for (media_type, requests) in [("application/json", json), ("application/octet-stream", values)] {
        for (target, body) in requests {
            let answer = server.request(Method::PUT, &target).header("content-type", media_type).body(body);
            let answer = answer.send().await.expect("an answer");
            assert!(answer.status().is_success(), "{target}: {}", answer.status());
        }
    }
}

async fn meet(crowd: Crowd, plan: &Plan, dir: &Path) -> Seen {
    let server = Launch::sled(dir).start();
    let status = load::alone(crowd, server.address());
    let stranger = match &plan.program {
        Some(program) => {
            let load = Load::start(program, crowd, plan.clients, server.address());
            let stranger = Stranger::behave(&server, plan.stay, plan.has_nodes()).await;
            drop(load);
            stranger
        }
        None => {
            let over = Arc::new(AtomicBool::new(false));
            let (seen, clients, address) = (over.clone(), plan.clients, server.address());
            let load = thread::spawn(move || gather(crowd, clients, address, || seen.load(Ordering::Relaxed)));
            let stranger = Stranger::behave(&server, plan.stay, plan.has_nodes()).await;
            over.store(true, Ordering::Relaxed);
            load.join().expect("the crowd goes");
            stranger
        }
    };
    let peak = server.peak_memory();
    let begun = Instant::now();
    while server.memory() > MOST_LEFT && begun.elapsed() < plan.calm {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let left = server.memory();
    let missing = crate::soak::taken_after(&server, Duration::from_secs(20)).await;
    drop(server);
    Seen { crowd, status, peak, left, stranger, missing }
}

impl Seen {
    /// Whether memory stayed within its bounds, and all that was taken came back.
    pub fn is_within_limits(&self) -> bool {
        self.peak <= MOST && self.left <= MOST_LEFT && self.missing.is_empty()
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { crowd, status, stranger, missing, .. } = self;
        let [peak, left] = [self.peak, self.left].map(|bytes| bytes >> 20);
        let status = status.map_or("-".to_owned(), |status| status.to_string());
        write!(
            f,
            "{crowd:20} {status:3} {peak:5} MiB at the peak, {left:4} left; p50 / p99 / most in ms: GET {}",
            stranger.gets.took
        )?;
        write!(f, ", element {}, PUT {}", stranger.elements.took, stranger.nodes.took)?;
        let refused = [&stranger.gets, &stranger.elements, &stranger.nodes].map(|waited| waited.refused);
        write!(f, "; refused {refused:?}")?;
        missing.iter().try_for_each(|line| write!(f, "\n  not back: {line}"))
    }
}
