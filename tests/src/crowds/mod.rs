//! Crowds of misbehaving clients: measures the server's memory, and the latency of a well-behaved bystander.

mod bystander;
mod kinds;
mod load;
mod queues;

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
    skip::note,
};
pub use bystander::{BystanderLatencies, LatencyStats};
pub use kinds::{Behavior, Crowd, CrowdError, Kind};
use load::Load;
pub use load::run_crowd;
pub use queues::{QueueWaits, Queues};

/// The maximum memory of the server during a crowd, in bytes.
pub const MAX_MEMORY: u64 = 2 << 30;
/// The maximum memory of the server a minute afterwards, in bytes.
pub const MAX_RETAINED: u64 = 300 << 20;

/// The crowds of a run, and the limits of observation.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The number of concurrent clients.
    pub clients: usize,
    /// The number of listed keys, of 1 KiB each.
    pub keys: usize,
    /// The duration of each crowd.
    pub stay: Duration,
    /// The time that the server has afterwards to release its memory.
    pub calm: Duration,
    /// The crowds, run in order, each with a server of its own.
    pub crowds: Vec<Crowd>,
    /// The command `crowds`, which runs the crowd in a low-priority process; `None` for threads of this process.
    pub program: Option<PathBuf>,
}

/// The observations of one crowd. Memory is in bytes.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The crowd.
    pub crowd: Crowd,
    /// The status of the response to a single client; `None` if the client does not wait for one.
    pub status: Option<u16>,
    /// The peak memory.
    pub peak: u64,
    /// The memory retained afterwards.
    pub retained: u64,
    /// The latencies of the bystander's requests.
    pub bystander: BystanderLatencies,
    /// The times that requests, of the crowd and others, waited in the server's queues.
    pub queues: Queues,
    /// The unreleased permits, as lines of `/metrics`.
    pub unreleased: Vec<String>,
}

/// Runs the crowds of a plan against new stores and returns their observations.
pub async fn run(plan: &Plan, dir: &Path) -> Vec<Observation> {
    fill(plan, dir).await;
    let mut observation = Vec::new();
    for crowd in &plan.crowds {
        let one = observe(*crowd, plan, dir).await;
        note(&one);
        observation.push(one);
    }
    observation
}

/// A long key; all of them are children of one prefix.
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
    json!({"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8", "fill_value": 0,
        "attributes": {},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default"}, "codecs": codecs})
}

/// Creates the trees and arrays that crowds request.
async fn fill_nodes(server: &Server) {
    let bytes = json!({"name": "bytes"});
    let zstd = json!([bytes, {"name": "zstd", "configuration": {"level": 1, "checksum": false}}]);
    let reversed: Vec<u64> = (0..25).rev().collect();
    let between = json!({"name": "numcodecs.delta", "configuration": {"dtype": "|u1"}});
    let turn = json!({"name": "transpose", "configuration": {"order": reversed}});
    let shards = json!([{"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 64], "codecs": [bytes],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}}]);
    let pattern: Vec<u8> = (0..64_u64 << 20).map(|index| (index.wrapping_mul(index >> 7) >> 3) as u8 & 31).collect();
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

async fn observe(crowd: Crowd, plan: &Plan, dir: &Path) -> Observation {
    let server = Launch::sled(dir).start();
    let status = load::response_to_one_client(crowd, server.address());
    let bystander = match &plan.program {
        Some(program) => {
            let load = Load::start(program, crowd, plan.clients, server.address());
            let bystander = BystanderLatencies::measure(&server, plan.stay, plan.has_nodes()).await;
            drop(load);
            bystander
        }
        None => {
            let over = Arc::new(AtomicBool::new(false));
            let (observation, clients, address) = (over.clone(), plan.clients, server.address());
            let load =
                thread::spawn(move || run_crowd(crowd, clients, address, || observation.load(Ordering::Relaxed)));
            let bystander = BystanderLatencies::measure(&server, plan.stay, plan.has_nodes()).await;
            over.store(true, Ordering::Relaxed);
            load.join().expect("the crowd goes");
            bystander
        }
    };
    let peak = server.peak_memory();
    let started = Instant::now();
    while server.memory() > MAX_RETAINED && started.elapsed() < plan.calm {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let retained = server.memory();
    let queues = Queues::of(&server).await;
    let unreleased = crate::soak::unreleased_after(&server, Duration::from_secs(20)).await;
    drop(server);
    Observation { crowd, status, peak, retained, bystander, queues, unreleased }
}

impl Observation {
    /// True if memory stayed within its limits and all permits were released.
    pub fn is_within_limits(&self) -> bool {
        self.peak <= MAX_MEMORY && self.retained <= MAX_RETAINED && self.unreleased.is_empty()
    }
}

impl fmt::Display for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { crowd, status, bystander, queues, unreleased, .. } = self;
        let [peak, retained] = [self.peak, self.retained].map(|bytes| bytes >> 20);
        let status = status.map_or("-".to_owned(), |status| status.to_string());
        write!(
            f,
            "{crowd:20} {status:3} {peak:5} MiB at the peak, {retained:4} left; p50 / p99 / most in ms: GET {}",
            bystander.gets.latencies
        )?;
        write!(f, ", element {}, PUT {}", bystander.elements.latencies, bystander.nodes.latencies)?;
        let failed = [&bystander.gets, &bystander.elements, &bystander.nodes].map(|waited| waited.failed);
        write!(f, "; failed {failed:?}{queues}")?;
        unreleased.iter().try_for_each(|line| write!(f, "\n  not back: {line}"))
    }
}
