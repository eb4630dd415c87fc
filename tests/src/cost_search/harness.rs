//! A server on which the cost of single requests is measured.

use std::{
    collections::VecDeque,
    io::{self, Write},
    path::Path,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::Method;
use tokio::time::timeout;

use super::{
    arrays::{Array, Content},
    fixtures,
    genome::{Effort, Genome},
    probe::Probe,
    rating::Measurement,
    requests::{Request, Trial},
};
use crate::server::{Launch, Server};

/// The timeout of a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(120);
/// The minimum and maximum time for creating the fixtures of a request.
const PREPARATION_TIME: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(20)];
/// The time to wait for the server's background work before the first request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// The time that the server may continue working after a response.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(3);
/// The time that the allocator takes to release free memory.
const MEMORY_RELEASE_TIME: Duration = Duration::from_millis(1500);
/// The maximum number of retained arrays.
const MAX_ARRAYS: usize = 40;
/// The maximum number of bytes read from a response, after which the client disconnects.
const MAX_RESPONSE_BYTES: u64 = 256 << 20;

/// A server with the state needed for trials.
#[derive(Debug)]
pub struct Harness {
    launch: Launch,
    server: Server,
    probe: Probe,
    number: u64,
    preparing: Duration,
    /// The created arrays, and whether their values could be stored.
    arrays: VecDeque<(String, bool)>,
}

/// The outcome of a trial.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The request was answered or rejected.
    Measurement(Measurement),
    /// The prerequisites cannot be created.
    Infeasible,
    /// No response in time.
    Hung,
    /// The server exited, with this log.
    Died(String),
}

impl Harness {
    /// Starts a server for some operations with a new store in a directory, and fills it. A quarter of `preparing` is
    /// allowed for the fixtures of a request.
    pub async fn new(dir: &Path, preparing: Duration, effort: Effort) -> Self {
        // Chunks cached by the previous trial would make the next one look cheap, and so would results.
        let launch = Launch::sled(&dir.join(effort.name())).arg("--chunk-cache=0").arg("--result-cache=0");
        let launch = effort.max_work().map_or(launch.clone(), |most| launch.arg(format!("--max-work={most}")));
        let server = launch.start();
        fixtures::prepare(&server).await;
        let probe = Probe::of(server.pid());
        let preparing = (preparing / 4).clamp(PREPARATION_TIME[0], PREPARATION_TIME[1]);
        Self { launch, server, probe, number: 0, preparing, arrays: VecDeque::new() }
    }

    /// Measures the request that a genome selects.
    pub async fn measure(&mut self, genome: &Genome) -> Outcome {
        self.number += 1;
        let trial = Trial::of(genome, self.number);
        if !self.prepare(&trial).await {
            return self.outcome_of_failure(Outcome::Infeasible);
        }
        let outcome = match self.send_and_measure(&trial).await {
            Some(outcome) => outcome,
            None => self.outcome_of_failure(Outcome::Hung),
        };
        for prefix in ["scratch", "converted"] {
            if trial.request.target.contains(prefix) {
                let erase = Request::new(Method::DELETE, format!("/store/{prefix}/"));
                let _ = timeout(RESPONSE_TIMEOUT, fixtures::send(&self.server, &erase)).await;
            }
        }
        outcome
    }

    /// Measures the request again after the server has released all memory of the first trial.
    pub async fn confirm(&mut self, genome: &Genome, before: Measurement) -> Measurement {
        tokio::time::sleep(MEMORY_RELEASE_TIME).await;
        match self.measure(genome).await {
            Outcome::Measurement(again) => before.minimum(again),
            _ => before,
        }
    }

    async fn prepare(&mut self, trial: &Trial) -> bool {
        for array in trial.array.iter().chain(&trial.coordinate) {
            if !self.has(array).await {
                return false;
            }
        }
        for request in &trial.before {
            // A rejected fixture is missing, but the request can still be sent.
            if !matches!(timeout(self.preparing, fixtures::send(&self.server, request)).await, Ok(Some(_))) {
                return false;
            }
        }
        self.probe.settle(IDLE_TIMEOUT).await.is_ok()
    }

    async fn has(&mut self, array: &Array) -> bool {
        if let Some((_, stored)) = self.arrays.iter().find(|(name, _)| *name == array.name) {
            return *stored;
        }
        if self.arrays.len() == MAX_ARRAYS
            && let Some((name, _)) = self.arrays.pop_front()
        {
            let _ = fixtures::send(&self.server, &Request::new(Method::DELETE, format!("/store/{name}/"))).await;
        }
        let stored = timeout(self.preparing, store(&self.server, array)).await.ok().flatten().is_some();
        self.arrays.push_back((array.name.clone(), stored));
        stored
    }

    /// Sends the request and measures it; `None` if there was no complete response.
    async fn send_and_measure(&self, trial: &Trial) -> Option<Outcome> {
        let started = self.probe.begin().ok()?;
        let response = Instant::now();
        let (status, received) = timeout(RESPONSE_TIMEOUT, send_request(&self.server, &trial.request)).await.ok()??;
        let latency = response.elapsed();
        self.probe.settle(SETTLE_TIMEOUT).await.ok()?;
        let (cpu, memory) = self.probe.since(&started).ok()?;
        let (sent, chunk, extra) = (trial.request.len(), trial.chunk(), trial.extra_memory());
        Some(Outcome::Measurement(Measurement { status, sent, received, chunk, extra, cpu, memory, latency }))
    }

    /// The outcome if the server is still running; otherwise restarts it.
    fn outcome_of_failure(&mut self, otherwise: Outcome) -> Outcome {
        if self.probe.begin().is_ok() {
            return otherwise;
        }
        let log = self.server.log();
        self.server = self.launch.start();
        self.probe = Probe::of(self.server.pid());
        Outcome::Died(log)
    }
}

/// The status, and the length of the decoded body as far as it was read.
async fn send_request(server: &Server, request: &Request) -> Option<(u16, u64)> {
    let mut response = server.request(request.method.clone(), &request.target);
    for (name, value) in &request.headers {
        response = response.header(*name, value);
    }
    let mut send_request = response.body(request.body.clone()).send().await.ok()?;
    let status = send_request.status().as_u16();
    let coding = send_request.headers().get("content-encoding").and_then(|coding| coding.to_str().ok());
    let mut body = DecodedBody::new(coding);
    // A chunk that does not decode resets the connection.
    while let Ok(Some(bytes)) = send_request.chunk().await {
        body.write_all(&bytes).expect("a body in the coding that its header names");
        if body.len() >= MAX_RESPONSE_BYTES {
            break;
        }
    }
    Some((status, body.len()))
}

/// Counts the bytes of a body as it is without its content coding.
enum DecodedBody {
    Plain(Count),
    Gzip(Box<flate2::write::GzDecoder<Count>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Count>>),
}

/// A writer that counts bytes.
#[derive(Default)]
struct Count(u64);

impl DecodedBody {
    fn new(coding: Option<&str>) -> Self {
        match coding {
            None => Self::Plain(Count::default()),
            Some("gzip") => Self::Gzip(Box::new(flate2::write::GzDecoder::new(Count::default()))),
            Some("zstd") => {
                Self::Zstd(Box::new(zstd::stream::write::Decoder::new(Count::default()).expect("a decoder")))
            }
            Some(other) => panic!("the coding {other} was not asked for"),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::Plain(count) => count.0,
            Self::Gzip(decoder) => decoder.get_ref().0,
            Self::Zstd(decoder) => decoder.get_ref().0,
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(count) => count.write_all(bytes),
            Self::Gzip(decoder) => decoder.write_all(bytes),
            Self::Zstd(decoder) => decoder.write_all(bytes),
        }
    }
}

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Declares an array, writes its first chunk, and copies that chunk to the keys of the others.
async fn store(server: &Server, array: &Array) -> Option<()> {
    let success = |status: u16| (200..300).contains(&status).then_some(());
    let document = server.put(&format!("/store/{}/zarr.json", array.name), array.document.to_string()).await;
    success(document.status().as_u16())?;
    let target = format!("/array/{}?select={}", array.name, array.first_chunk());
    if array.stored == 0 {
        return Some(());
    }
    let write = Request::new(Method::PUT, target);
    let write = match &array.content {
        Content::Same(element) => write.body("application/json", element.to_string()),
        bytes => write.body("application/octet-stream", bytes.bytes(array.chunk_bytes())),
    };
    success(fixtures::send(server, &write).await?)?;
    if array.stored > 1 {
        let chunk: Bytes = server.get(&format!("/store/{}", array.chunk_key(0))).await.bytes().await.ok()?;
        // Incompressible chunks would fill the disk.
        let copies = array.stored.min((256 << 20) / (chunk.len() as u64 + 1)).max(1);
        let copies = stream::iter(1..copies).map(|step| (array.chunk_key(step), chunk.clone()));
        copies
            .for_each_concurrent(
                16,
                |(key, chunk)| async move { drop(server.put(&format!("/store/{key}"), chunk).await) },
            )
            .await;
    }
    Some(())
}
