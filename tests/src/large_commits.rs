//! Large commits and erases: measures the server's memory, and the latency of small requests of other clients.

use std::{
    fmt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Method, StatusCode, header::RETRY_AFTER};
use serde_json::json;
use zarrd_store_local::IndexKind;

use crate::server::{Launch, Server};

/// The configuration of a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The index of the store.
    pub index: IndexKind,
    /// The number of chunks of 4 KiB in one commit.
    pub chunks: u64,
    /// The number of keys erased at once.
    pub keys: u64,
    /// The observation time of the idle server, and of an erase.
    pub watch: Duration,
}

/// The latencies of other clients' requests in one phase.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Vec<Duration>);

/// A phase of a run.
#[derive(Clone, Debug)]
pub struct Phase {
    /// The name.
    pub name: &'static str,
    /// The duration.
    pub duration: Duration,
    /// GETs of small values.
    pub gets: Latencies,
    /// PUTs of 1 KiB.
    pub puts: Latencies,
    /// Requests of `/readyz`.
    pub ready: Latencies,
}

/// The results of a run. Memory is in bytes.
#[derive(Clone, Debug)]
pub struct Report {
    /// The phases, in order.
    pub phases: Vec<Phase>,
    /// At the start.
    pub idle: u64,
    /// The peak.
    pub peak: u64,
    /// After the run and a wait of a few seconds.
    pub retained: u64,
}

const CHUNK: u64 = 4096;
/// The maximum number of chunks per request: the commit limit, less the metadata documents.
const MAX_CHUNKS_PER_REQUEST: u64 = 99_000;

/// Runs a plan on a new server.
pub async fn run(plan: Plan, dir: &Path) -> Report {
    let server = Launch::of(format!("{}:{}", plan.index, dir.display())).start();
    for number in 0..100 {
        let answer = server.put(&format!("/store/others/{number}"), vec![1; 1000]).await;
        assert_eq!(answer.status(), 201);
    }
    declare(&server, "large", plan.chunks * CHUNK, CHUNK).await;
    declare(&server, "many", plan.keys, 1).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let idle = server.memory();
    let mut phases = vec![phase("quiet", &server, tokio::time::sleep(plan.watch)).await];
    phases.push(phase("commit", &server, write(&server, "large", 0, plan.chunks, CHUNK)).await);
    let keys = async {
        let mut first = 0;
        while first < plan.keys {
            let count = MAX_CHUNKS_PER_REQUEST.min(plan.keys - first);
            write(&server, "many", first, count, 1).await;
            first += count;
        }
    };
    phases.push(phase("fill", &server, keys).await);
    let erase = async {
        let answer = server.delete("/store/many/").await;
        assert_eq!(answer.status(), 200);
        tokio::time::sleep(plan.watch).await;
    };
    phases.push(phase("erase", &server, erase).await);
    let peak = server.peak_memory();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let retained = server.memory();
    server.stop();
    Report { phases, idle, peak, retained }
}

async fn declare(server: &Server, name: &str, len: u64, chunk: u64) {
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [len], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes"}], "attributes": {},
    });
    let answer = server.put(&format!("/store/{name}/zarr.json"), document.to_string()).await;
    assert_eq!(answer.status(), 201);
}

/// Writes chunks of ones with one request, which is one commit.
async fn write(server: &Server, name: &str, first: u64, chunks: u64, chunk: u64) {
    let path = format!("/array/{name}?select={}:{}", first * chunk, (first + chunks) * chunk);
    let body = Bytes::from(vec![1; usize::try_from(chunks * chunk).expect("it fits")]);
    let deadline = Instant::now() + Duration::from_secs(600);
    loop {
        let request = server.request(Method::PUT, &path).timeout(Duration::from_secs(600)).body(body.clone());
        let answer = request.send().await.expect("an answer");
        // The commit before it is applied first, for which a server that is built without optimisation needs long.
        if answer.status() == StatusCode::SERVICE_UNAVAILABLE && Instant::now() < deadline {
            assert!(answer.headers().contains_key(RETRY_AFTER));
            tokio::time::sleep(Duration::from_secs(1)).await;
            continue;
        }
        assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap_or_default());
        return;
    }
}

async fn phase(name: &'static str, server: &Server, work: impl Future<Output = ()>) -> Phase {
    let stop = Arc::new(AtomicBool::new(false));
    let measure_latencies = async {
        let gets = measure_latencies(server, &stop, |number| (Method::GET, format!("/store/others/{}", number % 100)));
        let puts =
            measure_latencies(server, &stop, |number| (Method::PUT, format!("/store/others/put/{}", number % 50)));
        let ready = measure_latencies(server, &stop, |_| (Method::GET, "/readyz".to_owned()));
        tokio::join!(gets, puts, ready)
    };
    let work = async {
        let started = Instant::now();
        work.await;
        stop.store(true, Ordering::Relaxed);
        started.elapsed()
    };
    let (duration, (gets, puts, ready)) = tokio::join!(work, measure_latencies);
    Phase { name, duration, gets, puts, ready }
}

/// Sends requests repeatedly and records their latencies.
async fn measure_latencies(server: &Server, stop: &AtomicBool, request: impl Fn(u64) -> (Method, String)) -> Latencies {
    let mut found = Latencies::default();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let (method, path) = request(number);
        number += 1;
        let body = if method == Method::PUT { vec![2; 1024] } else { Vec::new() };
        let started = Instant::now();
        let answer = server.request(method, &path).body(body).send().await.expect("an answer");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.bytes().await.expect("a body");
        found.0.push(started.elapsed());
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    found
}

impl Latencies {
    /// Adds a latency.
    pub fn add(&mut self, latency: Duration) {
        self.0.push(latency);
    }

    /// The quantile at `part`.
    pub fn quantile(&self, part: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = ((sorted.len() as f64 * part) as usize).min(sorted.len().saturating_sub(1));
        sorted.get(at).copied().unwrap_or_default()
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |part| self.quantile(part).as_secs_f64() * 1000.0;
        write!(f, "{:.2} / {:.2} / {:.1}", ms(0.5), ms(0.99), ms(1.0))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "phase      took     GET p50 / p99 / most   PUT of 1 KiB   /readyz (ms)")?;
        for Phase { name, duration, gets, puts, ready } in &self.phases {
            writeln!(f, "{name:8} {:5.1} s   {gets}   {puts}   {ready}", duration.as_secs_f64())?;
        }
        let [idle, peak, retained] = [self.idle, self.peak, self.retained].map(|bytes| bytes >> 20);
        writeln!(f, "memory: {idle} MiB idle, {peak} at its peak, {retained} a few seconds later")
    }
}
