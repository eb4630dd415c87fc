//! A server of which the costs of single requests are measured.

use std::{
    collections::VecDeque,
    path::PathBuf,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::Method;
use tokio::time::timeout;

use super::{
    arrays::{Array, Content},
    fixtures,
    genome::Genome,
    probe::Probe,
    rating::Measured,
    requests::{Request, Trial},
};
use crate::server::{Launch, Server};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long it may take at the least, and at the most, to make what a request finds.
const PREPARING: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(20)];
/// How long is waited for what the server does in the background, before anything is asked.
const QUIET: Duration = Duration::from_secs(20);
/// How long the server may go on working after an answer.
const SETTLING: Duration = Duration::from_secs(3);
/// How long the allocator takes to give back what is free.
const GIVING_BACK: Duration = Duration::from_millis(1500);
/// How many arrays are kept.
const ARRAYS: usize = 40;
/// What is read of an answer, in bytes; who leaves then has had that much.
const MOST_READ: u64 = 256 << 20;

/// A server with what it needs for trials.
#[derive(Debug)]
pub struct Stage {
    launch: Launch,
    server: Server,
    probe: Probe,
    number: u64,
    preparing: Duration,
    /// Those that there are, and whether what is stored in them could be stored.
    arrays: VecDeque<(String, bool)>,
}

/// What came of a trial.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It was answered, or refused.
    Measured(Measured),
    /// What it needs cannot be made.
    Impossible,
    /// There was no answer in time.
    Hung,
    /// The server ended, with this log.
    Died(String),
}

impl Stage {
    /// Starts a server of a new store in a directory, and fills it. What a request finds is made in a quarter of that time.
    pub async fn new(dir: PathBuf, preparing: Duration) -> Self {
        // What is kept of the trial before would make the next one look cheap.
        let launch = Launch::sled(&dir).arg("--chunk-cache").arg("0");
        let server = launch.start();
        fixtures::prepare(&server).await;
        let probe = Probe::of(server.pid());
        let preparing = (preparing / 4).clamp(PREPARING[0], PREPARING[1]);
        Self { launch, server, probe, number: 0, preparing, arrays: VecDeque::new() }
    }

    /// Measures the request that a genome chooses.
    pub async fn measure(&mut self, genome: &Genome) -> Outcome {
        self.number += 1;
        let trial = Trial::of(genome, self.number);
        if !self.prepare(&trial).await {
            return self.outcome_of_failure(Outcome::Impossible);
        }
        let outcome = match self.ask(&trial).await {
            Some(outcome) => outcome,
            None => self.outcome_of_failure(Outcome::Hung),
        };
        for prefix in ["scratch", "converted"] {
            if trial.request.target.contains(prefix) {
                let erase = Request::new(Method::DELETE, format!("/store/{prefix}/"));
                let _ = timeout(PATIENCE, fixtures::send(&self.server, &erase)).await;
            }
        }
        outcome
    }

    /// The same once more, when the server has nothing left of what it took before.
    pub async fn confirm(&mut self, genome: &Genome, before: Measured) -> Measured {
        tokio::time::sleep(GIVING_BACK).await;
        match self.measure(genome).await {
            Outcome::Measured(again) => before.least(again),
            _ => before,
        }
    }

    async fn prepare(&mut self, trial: &Trial) -> bool {
        if let Some(array) = &trial.array
            && !self.has(array).await
        {
            return false;
        }
        for request in &trial.before {
            // What is refused is not there, which is no reason not to ask for it.
            if !matches!(timeout(self.preparing, fixtures::send(&self.server, request)).await, Ok(Some(_))) {
                return false;
            }
        }
        self.probe.settle(QUIET).await.is_ok()
    }

    async fn has(&mut self, array: &Array) -> bool {
        if let Some((_, stored)) = self.arrays.iter().find(|(name, _)| *name == array.name) {
            return *stored;
        }
        if self.arrays.len() == ARRAYS
            && let Some((name, _)) = self.arrays.pop_front()
        {
            let _ = fixtures::send(&self.server, &Request::new(Method::DELETE, format!("/store/{name}/"))).await;
        }
        let stored = timeout(self.preparing, store(&self.server, array)).await.ok().flatten().is_some();
        self.arrays.push_back((array.name.clone(), stored));
        stored
    }

    /// Asks, and measures; `None` where no whole answer came.
    async fn ask(&self, trial: &Trial) -> Option<Outcome> {
        let begun = self.probe.begin().ok()?;
        let asked = Instant::now();
        let (status, yielded) = timeout(PATIENCE, answer(&self.server, &trial.request)).await.ok()??;
        let latency = asked.elapsed();
        self.probe.settle(SETTLING).await.ok()?;
        let (cpu, memory) = self.probe.since(&begun).ok()?;
        let (carried, chunk) = (trial.request.len(), trial.chunk());
        Some(Outcome::Measured(Measured { status, carried, yielded, chunk, cpu, memory, latency }))
    }

    /// What it was, where the server runs; if not, another one is started.
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

/// The status, and the length of the body as far as it is read.
async fn answer(server: &Server, request: &Request) -> Option<(u16, u64)> {
    let mut asked = server.request(request.method.clone(), &request.target);
    for (name, value) in &request.headers {
        asked = asked.header(*name, value);
    }
    let mut answer = asked.body(request.body.clone()).send().await.ok()?;
    let (status, mut yielded) = (answer.status().as_u16(), 0);
    while yielded < MOST_READ {
        match answer.chunk().await {
            Ok(Some(bytes)) => yielded += bytes.len() as u64,
            Ok(None) => break,
            // A chunk that does not decode resets the connection.
            Err(_) => break,
        }
    }
    Some((status, yielded))
}

/// Declares an array, writes its first chunk, and puts copies of that in the places of the others.
async fn store(server: &Server, array: &Array) -> Option<()> {
    let success = |status: u16| (200..300).contains(&status).then_some(());
    let document = server.put(&format!("/store/{}/zarr.json", array.name), array.document.to_string()).await;
    success(document.status().as_u16())?;
    let target = format!("/array/{}?select={}", array.name, array.first_chunk());
    let write = Request::new(Method::PUT, target);
    let write = match &array.content {
        Content::Same(element) => write.body("application/json", element.to_string()),
        bytes => write.body("application/octet-stream", bytes.bytes(array.chunk_bytes())),
    };
    success(fixtures::send(server, &write).await?)?;
    if array.stored > 1 {
        let chunk: Bytes = server.get(&format!("/store/{}", array.chunk_key(0))).await.bytes().await.ok()?;
        // What cannot be compressed would fill the disk.
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
