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
    cost_search::Probe,
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

/// The processor time of the server after a crowd has left, beyond that of the jobs that run then.
pub const MAX_AFTERWARDS: Duration = Duration::from_secs(1);

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
    /// The status of responses without a crowd, the first that is not 200 if there is one; `None` if clients do not wait
    /// for one.
    pub status: Option<u16>,
    /// The processor time of as many responses as are computed at the same time, with nothing cached. Threads that
    /// share a core or its caches slow each other down, so it is more than that of as many responses one by one.
    pub full: Duration,
    /// The peak memory.
    pub peak: u64,
    /// The memory retained afterwards.
    pub retained: u64,
    /// The processor time of the server after the crowd has left, until it is idle.
    pub afterwards: Duration,
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

/// The number of labels of a coordinate: enough not to be cached, and few enough that sorting them takes less than
/// [`MAX_AFTERWARDS`] of a core without optimizations, so that two jobs that slow each other down stay within it.
const LABELS: u64 = 1 << 20;

/// A coordinate that is too large to be cached, and has to be sorted.
fn coordinate(data_type: &str) -> String {
    let codecs = json!([{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd"}]);
    let mut document = array(&[LABELS], &[LABELS / 16], &codecs);
    (document["data_type"], document["dimension_names"]) = (data_type.into(), json!(["x"]));
    document.to_string()
}

/// An array over a coordinate, of which nothing is stored.
fn labelled() -> String {
    let mut document = array(&[LABELS], &[LABELS], &json!([{"name": "bytes"}]));
    document["dimension_names"] = json!(["x"]);
    document.to_string()
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
        ("/node/crowd/labelled/0/x", coordinate("float64")),
        ("/node/crowd/labelled/1/x", coordinate("int64")),
        ("/node/crowd/labelled/0/data", labelled()),
        ("/node/crowd/labelled/1/data", labelled()),
    ];
    let json = nodes.map(|(target, document)| (target.to_owned(), document.into_bytes())).to_vec();
    let values = vec![
        ("/array/crowd/rows".to_owned(), pattern.clone()),
        ("/array/crowd/chunk".to_owned(), pattern.clone()),
        (turned, pattern[..32 << 20].to_vec()),
        ("/array/others/one".to_owned(), pattern[..64 << 10].to_vec()),
        ("/array/crowd/labelled/0/x".to_owned(), pattern[..LABELS as usize * 8].to_vec()),
        ("/array/crowd/labelled/1/x".to_owned(), pattern[..LABELS as usize * 8].to_vec()),
    ];
    for (media_type, requests) in [("application/json", json), ("application/octet-stream", values)] {
        for (target, body) in requests {
            let answer = server.request(Method::PUT, &target).header("content-type", media_type).body(body);
            let answer = answer.send().await.expect("an answer");
            assert!(answer.status().is_success(), "{target}: {}", answer.status());
        }
    }
}

/// The number of jobs that decode or compute at the same time.
async fn decoding_threads(server: &Server) -> usize {
    let answer = server.get("/metrics").await.error_for_status().expect("the metrics are served");
    let metrics = answer.text().await.expect("a text");
    let mut values = metrics.lines().filter_map(|line| line.strip_prefix("zarrd_decoding_threads "));
    values.next().and_then(|value| value.parse().ok()).expect("the number of decoding threads")
}

async fn observe(crowd: Crowd, plan: &Plan, dir: &Path) -> Observation {
    let server = Launch::sled(dir).start();
    let probe = Probe::of(server.pid());
    let jobs = decoding_threads(&server).await;
    let asked = probe.begin().expect("the server runs");
    let statuses = load::responses_to(jobs, crowd, server.address());
    let status = statuses.into_iter().find(|status| *status != Some(200)).unwrap_or(Some(200));
    let (full, _) = probe.since(&asked).expect("the server runs");
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
    let left = probe.begin().expect("the server runs");
    probe.settle(plan.calm).await.expect("the server runs");
    let (afterwards, _) = probe.since(&left).expect("the server runs");
    let started = Instant::now();
    while server.memory() > MAX_RETAINED && started.elapsed() < plan.calm {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let retained = server.memory();
    let queues = Queues::of(&server).await;
    let unreleased = crate::soak::unreleased_after(&server, Duration::from_secs(20)).await;
    drop(server);
    Observation { crowd, status, full, peak, retained, afterwards, bystander, queues, unreleased }
}

impl Observation {
    /// True if memory stayed within its limits, all permits were released, and computations ended with their clients.
    pub fn is_within_limits(&self) -> bool {
        let stopped = !self.crowd.kind.computes() || self.afterwards <= self.max_afterwards();
        self.peak <= MAX_MEMORY && self.retained <= MAX_RETAINED && self.unreleased.is_empty() && stopped
    }
}

impl Observation {
    /// The maximum processor time after a crowd that computes has left: each thread completes the job that it runs,
    /// which is at most all of a request, and none begins another one.
    fn max_afterwards(&self) -> Duration {
        self.full + MAX_AFTERWARDS
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
        write!(f, "; failed {failed:?}; {:.2} s of processor time afterwards", self.afterwards.as_secs_f64())?;
        write!(f, " ({:.2} s for one response in each decoding thread){queues}", self.full.as_secs_f64())?;
        unreleased.iter().try_for_each(|line| write!(f, "\n  not back: {line}"))
    }
}
