//! Concurrency: many write overlapping regions of one array while others read it, and the server is killed in between.
//!
//! Each write puts one stamp into all elements of its region, so that every reading tells which commits it is made of. The [`journal`] knows
//! when each write began and when it was acknowledged; no reading may lack what was acknowledged before it began, and the writes that it shows must have an order in which
//! one after the other makes exactly this reading. Of a write that was under way when the server was killed, all is there or nothing.

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

/// How the chunks of the array are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// As they are.
    Raw,
    /// Compressed.
    Zstd,
    /// Compressed, in shards.
    Sharded,
}

/// How it is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The kind of index, `sled` or `redb`.
    pub index: String,
    /// The array.
    pub layout: Layout,
    /// How many write at the same time.
    pub writers: u64,
    /// How many read meanwhile.
    pub readers: u32,
    /// For how long.
    pub time: Duration,
    /// How often the server is killed in that time.
    pub kills: u32,
    /// What the random choices are made from.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Writes that were acknowledged.
    pub acknowledged: u64,
    /// Chunks that had to be done again, since somebody else wrote them meanwhile.
    pub repeated: u64,
    /// Writes that the server had no room for.
    pub busy: u64,
    /// Readings of the whole array that were checked.
    pub readings: u64,
    /// Writes that were under way when the server was killed.
    pub interrupted: u64,
    /// Those of them that are there.
    pub interrupted_and_there: u64,
}

/// What one of those that write or read did in a round.
#[derive(Debug, Default)]
struct Done {
    report: Report,
    /// The stamp of the write that was under way when the server died.
    pending: Option<u64>,
}

/// Where the array is, and what is known of it.
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
    /// All of them.
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

/// Runs it on a new store in `dir`.
///
/// # Panics
///
/// Where a write was lost, a reading mixes commits, a chunk is torn, or the store is damaged in the end.
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
            let done = done.expect("a writer or reader found nothing wrong");
            report.add(&done.report);
            pending.extend(done.pending);
        }
        let array = Array::new(&server, &journal);
        let found = array.read().await.expect("the array can be read");
        report.interrupted += pending.len() as u64;
        report.interrupted_and_there += journal.settle(&pending, &found);
        journal.check(&journal.now(), &found).unwrap_or_else(|wrong| panic!("round {round}: {wrong}"));
        report.readings += 1;
    }
    server.stop();
    let checked = zarrd_with(["check", "--store", &store]);
    assert_eq!(checked.code, Some(0), "zarrd check found damage: {checked:?}");
    report
}

/// Lets everybody write and read for some time, or until the server is gone.
fn begin(plan: &Plan, server: &Server, journal: &Arc<Journal>, time: Duration, seed: u64) -> JoinSet<Done> {
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

    async fn write_until(self, until: Instant, number: u64, writers: u64, mut random: StdRng) -> Done {
        let mut done = Done::default();
        while Instant::now() < until {
            let region = Region::choose(&mut random, number, writers);
            let stamp = self.journal.begin(&region);
            let Ok(answer) = self.put(&region, stamp, random.random_bool(0.25)).await else {
                done.pending = Some(stamp);
                break;
            };
            match answer {
                (200, told) => {
                    self.journal.acknowledge(stamp);
                    done.report.acknowledged += 1;
                    done.report.repeated +=
                        told["conflicts_retried"].as_u64().expect("how many chunks were done again");
                }
                (503, _) => {
                    self.journal.refuse(stamp);
                    done.report.busy += 1;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                (status, told) => panic!("PUT {}: {status} {told}", region.selection()),
            }
        }
        done
    }

    /// Writes a stamp into a region: all its elements, or one for all.
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

    async fn read_until(self, until: Instant) -> Done {
        let mut done = Done::default();
        while Instant::now() < until {
            let before = self.journal.now();
            let Ok(found) = self.read().await else { break };
            self.journal.check(&before, &found).unwrap_or_else(|wrong| panic!("{wrong}"));
            done.report.readings += 1;
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
        self.repeated += other.repeated;
        self.busy += other.busy;
        self.readings += other.readings;
    }
}
