//! Legal and hostile clients for a long time: each answer comes, is the right one where that is known, and afterwards the server has given back all that it took.

mod gauges;
mod hostile;
mod legal;

use std::{
    fmt,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use http::{Method, StatusCode};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use reqwest::{Body, Client};
use tokio::task::JoinSet;

use crate::server::{Launch, Server};
pub use gauges::taken_after;

/// How long an answer may take.
const DEADLINE: Duration = Duration::from_secs(60);
/// The most memory that the server may have after all, in bytes.
const MOST_LEFT: u64 = 300 << 20;
/// How much more it may have at the end of the load than at the beginning, in bytes.
const MOST_DRIFT: u64 = 128 << 20;
/// How long it may take until nothing is taken any more: what is waited for ends after a minute.
const RETURNING: Duration = Duration::from_secs(90);

/// What is done.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How long there is load.
    pub time: Duration,
    /// How long the server is idle afterwards.
    pub calm: Duration,
    /// What the random choices are made from.
    pub seed: u64,
}

/// What was seen. Memory is in bytes.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many requests were answered.
    pub answered: u64,
    /// How many of these were told to come again.
    pub busy: u64,
    /// How many answers were compared with what they have to be.
    pub compared: u64,
    /// What hostile clients did, all in all.
    pub hostile: u64,
    /// Answers that were wrong, and requests that were not answered in time.
    pub wrong: Vec<String>,
    /// The most memory.
    pub peak: u64,
    /// The medians of the memory without the chunk cache, over the second fifth of the load and over the last one.
    pub medians: [u64; 2],
    /// What was left after the idle time.
    pub left: u64,
    /// What is still taken: the lines of `/metrics`.
    pub taken: Vec<String>,
}

/// What the clients share.
#[derive(Debug)]
struct Field {
    server: Server,
    client: Client,
    end: Instant,
    answered: AtomicU64,
    busy: AtomicU64,
    compared: AtomicU64,
    hostile: AtomicU64,
    wrong: Mutex<Vec<String>>,
}

/// An answer to a legal request.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    body: bytes::Bytes,
}

/// Runs a plan on a new store in a directory.
pub async fn run(plan: Plan, dir: &Path) -> Report {
    let server = Launch::sled(dir).start();
    let client = Client::builder().timeout(DEADLINE).build().expect("a client");
    let zero = || AtomicU64::new(0);
    let end = Instant::now() + plan.time;
    let field = Field {
        server,
        client,
        end,
        answered: zero(),
        busy: zero(),
        compared: zero(),
        hostile: zero(),
        wrong: Mutex::default(),
    };
    let field = Arc::new(field);
    let mut running = JoinSet::new();
    let mut random = StdRng::seed_from_u64(plan.seed);
    legal::begin(&field, &mut random, &mut running).await;
    hostile::begin(&field, &mut random, &mut running);
    let samples = sample(&field).await;
    while let Some(done) = running.join_next().await {
        done.expect("a client ends");
    }
    report(&field, plan, samples).await
}

async fn sample(field: &Field) -> Vec<u64> {
    let mut samples = Vec::new();
    while field.goes_on() {
        samples.push(field.server.memory().saturating_sub(gauges::cached(&field.server).await));
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    samples
}

async fn report(field: &Field, plan: Plan, samples: Vec<u64>) -> Report {
    let peak = field.server.peak_memory();
    let taken = gauges::taken_after(&field.server, RETURNING).await;
    tokio::time::sleep(plan.calm).await;
    let fifth = samples.len() / 5;
    let median = |mut part: Vec<u64>| {
        part.sort_unstable();
        part.get(part.len() / 2).copied().unwrap_or(0)
    };
    let medians = [1, 4].map(|nth| median(samples.iter().skip(nth * fifth).take(fifth).copied().collect()));
    let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
    Report {
        answered: count(&field.answered),
        busy: count(&field.busy),
        compared: count(&field.compared),
        hostile: count(&field.hostile),
        wrong: field.wrong.lock().expect("nobody panics with it").clone(),
        peak,
        medians,
        left: field.server.memory(),
        taken,
    }
}

impl Field {
    fn goes_on(&self) -> bool {
        Instant::now() < self.end
    }

    /// Asks, and waits for the answer; `None` where the server said to come again, or where the request failed, which is noted.
    async fn ask(&self, method: Method, target: &str, media_type: &str, body: impl Into<Body>) -> Option<Answer> {
        let request = self.client.request(method.clone(), self.server.url(target)).header("content-type", media_type);
        let answer = async {
            let answer = request.body(body).send().await?;
            Ok::<_, reqwest::Error>(Answer { status: answer.status(), body: answer.bytes().await? })
        };
        match answer.await {
            Ok(answer) if matches!(answer.status.as_u16(), 429 | 503) => {
                self.busy.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(20)).await;
                None
            }
            Ok(answer) => {
                self.answered.fetch_add(1, Ordering::Relaxed);
                if answer.status == StatusCode::INTERNAL_SERVER_ERROR {
                    self.complain(format!("{method} {target}: {}", String::from_utf8_lossy(&answer.body)));
                }
                Some(answer)
            }
            Err(error) => {
                let hung = if error.is_timeout() { "hangs" } else { "fails" };
                self.complain(format!("{method} {target} {hung}: {error:?}"));
                None
            }
        }
    }

    /// Compares what came with what had to come.
    fn compare(&self, what: &str, came: &[u8], expected: &[u8]) {
        self.compared.fetch_add(1, Ordering::Relaxed);
        if came != expected {
            let place = came.iter().zip(expected).position(|(came, expected)| came != expected);
            let [came, expected] = [came.len(), expected.len()];
            self.complain(format!("{what}: {came} bytes came where there are {expected}; they differ at {place:?}"));
        }
    }

    fn complain(&self, what: String) {
        let mut wrong = self.wrong.lock().expect("nobody panics with it");
        if wrong.len() < 100 {
            wrong.push(what);
        }
    }
}

/// Waits a moment, another one each time.
async fn pause(random: &mut StdRng, most: u64) {
    tokio::time::sleep(Duration::from_millis(random.random_range(0..most.max(1)))).await;
}

impl Report {
    /// Whether all was answered rightly and given back.
    pub fn is_right(&self) -> bool {
        let [before, after] = self.medians;
        let drifted = after > before + MOST_DRIFT;
        self.wrong.is_empty() && self.taken.is_empty() && self.left <= MOST_LEFT && !drifted
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [peak, left, before, after] =
            [self.peak, self.left, self.medians[0], self.medians[1]].map(|bytes| bytes >> 20);
        let Self { answered, busy, compared, hostile, .. } = self;
        writeln!(
            f,
            "{answered} requests answered, {compared} compared, {busy} told to come again, {hostile} hostile clients"
        )?;
        writeln!(
            f,
            "memory: {before} MiB early and {after} late beside the chunk cache; with it {peak} at the peak, {left} left"
        )?;
        self.wrong.iter().try_for_each(|wrong| writeln!(f, "wrong: {wrong}"))?;
        self.taken.iter().try_for_each(|line| writeln!(f, "not back: {line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_lists_every_failed_condition() {
        let right = Report { medians: [100 << 20, 200 << 20], left: 300 << 20, ..Report::default() };
        assert!(right.is_right());
        for wrong in [
            Report { medians: [100 << 20, 229 << 20], ..right.clone() },
            Report { left: 301 << 20, ..right.clone() },
            Report { wrong: vec!["a".to_owned()], ..right.clone() },
            Report { taken: vec!["a 1".to_owned()], ..right.clone() },
        ] {
            assert!(!wrong.is_right(), "{wrong}");
        }
    }
}
