//! Concurrency: many clients write overlapping regions of one array while others read it, and the server is killed in
//! between.
//!
//! Each write puts one stamp into all elements of its region, so that every read shows which commits it consists of.
//! The [`journal`] records the start and acknowledgement of each write. A read must include every write acknowledged
//! before it started, and the visible writes must have an order that produces exactly this result. A write in progress
//! when the server is killed is applied completely or not at all.

pub mod journal;
mod region;

use std::{path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use http::header;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

use crate::server::{Launch, Server, zarrd_with};
use journal::Journal;
use region::{COLUMNS, ROWS, Region};

/// The storage of the array's chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Uncompressed.
    Raw,
    /// Compressed.
    Zstd,
    /// Compressed, in shards.
    Sharded,
}

/// The configuration of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The kind of index, `sled` or `redb`.
    pub index: String,
    /// The chunk storage of the array.
    pub layout: Layout,
    /// The number of concurrent writers.
    pub writers: u64,
    /// The number of concurrent readers.
    pub readers: u32,
    /// The duration; longer if the least number of writes and reads takes longer.
    pub time: Duration,
    /// The number of times the server is killed.
    pub kills: u32,
    /// The seed of the random choices.
    pub seed: u64,
}

/// The writes of each writer and the reads of each reader in a round, whose server lives, however slow the machine is.
const MIN_WRITES: u64 = 3;
const MIN_READS: u64 = 2;

/// The results of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Writes that were acknowledged.
    pub acknowledged: u64,
    /// Chunks that were retried because another writer changed them.
    pub conflicts_retried: u64,
    /// Writes rejected because the server was busy.
    pub busy: u64,
    /// Verified reads of the whole array.
    pub reads: u64,
    /// Writes in progress when the server was killed.
    pub interrupted: u64,
    /// Interrupted writes that were applied.
    pub interrupted_applied: u64,
}

/// The results of one writer or reader in a round.
#[derive(Debug, Default)]
struct TaskResult {
    report: Report,
    /// The stamp of the write in progress when the server died.
    pending: Option<u64>,
}

/// The array under test and the journal of its writes.
#[derive(Clone)]
struct Array {
    url: String,
    http: reqwest::Client,
    journal: Arc<Journal>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            index: "sled".into(),
            layout: Layout::Raw,
            writers: 16,
            readers: 3,
            time: Duration::from_secs(60),
            kills: 0,
            seed: rand::random(),
        }
    }
}

impl Layout {
    /// All layouts.
    pub const ALL: [Self; 3] = [Self::Raw, Self::Zstd, Self::Sharded];

    /// The ZOM of the array.
    fn zom(self) -> Value {
        let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
        let zstd = json!({"name": "zstd", "configuration": {"level": 1, "checksum": false}});
        let inner = json!([8, 16]);
        let (chunk, codecs) = match self {
            Self::Raw => (inner, json!([bytes])),
            Self::Zstd => (inner, json!([bytes, zstd])),
            Self::Sharded => {
                let sharding =
                    json!({"chunk_shape": inner, "codecs": [bytes, zstd], "index_codecs": [bytes, {"name": "crc32c"}]});
                (json!([32, 32]), json!([{"name": "sharding_indexed", "configuration": sharding}]))
            }
        };
        json!({
            "zarr_format": 3, "node_type": "array", "shape": [ROWS, COLUMNS], "data_type": "uint64", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "codecs": codecs, "attributes": {},
        })
    }
}

/// Runs the plan on a new store in `dir`.
///
/// # Panics
///
/// If a write is lost, a read mixes commits, a chunk is torn, or the store is damaged in the end.
pub async fn run(plan: &Plan, dir: &Path) -> Report {
    let store = format!("{}:{}", plan.index, dir.display());
    let launch = Launch::of(&store);
    let journal = Arc::new(Journal::default());
    let mut random = StdRng::seed_from_u64(plan.seed);
    let mut report = Report::default();
    let mut server = launch.start();
    let created = server.put("/node/contended", plan.layout.zom().to_string()).await;
    assert_eq!(created.status(), 201, "{}", created.text().await.unwrap_or_default());
    let rounds = plan.kills + 1;
    for round in 1..=rounds {
        let last = round == rounds;
        let time = plan.time / rounds;
        let time = if last { time } else { time.mul_f64(random.random_range(0.3..1.0)) };
        let mut running =
            begin(plan, &server, &journal, time + Duration::from_secs(if last { 0 } else { 60 }), random.random());
        if !last {
            tokio::time::sleep(time).await;
            server.kill();
            server = launch.start();
        }
        let mut pending = Vec::new();
        while let Some(done) = running.join_next().await {
            let done = done.expect("a writer or reader does not panic");
            report.add(&done.report);
            pending.extend(done.pending);
        }
        let array = Array::new(&server, &journal);
        let found = array.read().await.expect("the array can be read");
        report.interrupted += pending.len() as u64;
        report.interrupted_applied += journal.settle(&pending, &found);
        journal.check(&journal.now(), &found).unwrap_or_else(|inconsistent| panic!("round {round}: {inconsistent}"));
        report.reads += 1;
    }
    server.stop();
    let checked = zarrd_with(["check", "--store", &store]);
    assert_eq!(checked.code, Some(0), "zarrd check found damage: {checked:?}");
    report
}

/// Starts all writers and readers for a duration, or until the server is gone.
fn begin(plan: &Plan, server: &Server, journal: &Arc<Journal>, time: Duration, seed: u64) -> JoinSet<TaskResult> {
    let until = Instant::now() + time;
    let mut running = JoinSet::new();
    for number in 0..plan.writers {
        let array = Array::new(server, journal);
        let random = StdRng::seed_from_u64(seed ^ number);
        running.spawn(array.write_until(until, number, plan.writers, random));
    }
    for _ in 0..plan.readers {
        running.spawn(Array::new(server, journal).read_until(until));
    }
    running
}

impl Array {
    fn new(server: &Server, journal: &Arc<Journal>) -> Self {
        Self { url: server.url("/array/contended"), http: reqwest::Client::new(), journal: journal.clone() }
    }

    async fn write_until(self, until: Instant, number: u64, writers: u64, mut random: StdRng) -> TaskResult {
        let mut done = TaskResult::default();
        while Instant::now() < until || done.report.acknowledged < MIN_WRITES {
            let region = Region::choose(&mut random, number, writers);
            let stamp = self.journal.begin(&region);
            let Ok(answer) = self.put(&region, stamp, random.random_bool(0.25)).await else {
                done.pending = Some(stamp);
                break;
            };
            match answer {
                (200, report) => {
                    self.journal.acknowledge(stamp);
                    done.report.acknowledged += 1;
                    done.report.conflicts_retried +=
                        report["conflicts_retried"].as_u64().expect("the number of retried chunks");
                }
                (503, _) => {
                    self.journal.reject(stamp);
                    done.report.busy += 1;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                (status, report) => panic!("PUT {}: {status} {report}", region.selection()),
            }
        }
        done
    }

    /// Writes a stamp into a region, as an array of elements or as one scalar.
    async fn put(&self, region: &Region, stamp: u64, scalar: bool) -> reqwest::Result<(u16, Value)> {
        let url = format!("{}?select={}", self.url, region.selection());
        let (media, body) = match scalar {
            true => ("application/json", stamp.to_string().into_bytes()),
            false => ("application/octet-stream", stamp.to_le_bytes().repeat(region.len())),
        };
        let answer = self.http.put(url).header(header::CONTENT_TYPE, media).body(body).send().await?;
        let status = answer.status().as_u16();
        let body = answer.bytes().await?;
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    }

    async fn read_until(self, until: Instant) -> TaskResult {
        let mut done = TaskResult::default();
        while Instant::now() < until || done.report.reads < MIN_READS {
            let before = self.journal.now();
            let Ok(found) = self.read().await else { break };
            self.journal.check(&before, &found).unwrap_or_else(|inconsistent| panic!("{inconsistent}"));
            done.report.reads += 1;
        }
        done
    }

    /// The stamps of all elements.
    async fn read(&self) -> reqwest::Result<Vec<u64>> {
        let answer = self.http.get(format!("{}?format=raw", self.url)).send().await?;
        let status = answer.status();
        let body: Bytes = answer.bytes().await?;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        let (stamps, rest) = body.as_chunks::<8>();
        assert!(rest.is_empty() && stamps.len() == ROWS * COLUMNS, "{} bytes", body.len());
        Ok(stamps.iter().map(|stamp| u64::from_le_bytes(*stamp)).collect())
    }
}

impl Report {
    fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.conflicts_retried += other.conflicts_retried;
        self.busy += other.busy;
        self.reads += other.reads;
    }
}
