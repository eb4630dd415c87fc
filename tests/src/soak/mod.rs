//! Well-behaved and hostile clients for a long time: every response arrives and is correct as far as that is known, and
//! afterwards the server has released all resources.

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
pub use gauges::unreleased_after;

/// The response timeout.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum memory of the server in the end, in bytes.
const MAX_RETAINED: u64 = 300 << 20;
/// The maximum growth of memory from the start to the end of the load, in bytes.
const MAX_DRIFT: u64 = 128 << 20;
/// The time within which all resources must be released: waits end after a minute.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(90);

/// The configuration of a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The duration of the load.
    pub time: Duration,
    /// The idle time afterwards.
    pub calm: Duration,
    /// The seed of the random choices.
    pub seed: u64,
}

/// The results of a run. Memory is in bytes.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The number of answered requests.
    pub answered: u64,
    /// The number of responses that asked for a retry.
    pub busy: u64,
    /// The number of verified responses.
    pub compared: u64,
    /// The number of hostile connections.
    pub hostile: u64,
    /// Wrong or missing responses.
    pub errors: Vec<String>,
    /// The peak memory.
    pub peak: u64,
    /// The median memory without the chunk cache, in the second and in the last fifth of the load.
    pub medians: [u64; 2],
    /// The memory after the idle time.
    pub retained: u64,
    /// The lines of `/metrics` for unreleased resources.
    pub unreleased: Vec<String>,
}

/// State shared by the clients.
#[derive(Debug)]
struct Context {
    server: Server,
    client: Client,
    end: Instant,
    answered: AtomicU64,
    busy: AtomicU64,
    compared: AtomicU64,
    hostile: AtomicU64,
    errors: Mutex<Vec<String>>,
}

/// The response to a well-behaved request.
#[derive(Debug)]
struct Response {
    status: StatusCode,
    body: bytes::Bytes,
}

/// Runs a plan on a new store in a directory.
pub async fn run(plan: Plan, dir: &Path) -> Report {
    let server = Launch::sled(dir).start();
    let client = Client::builder().timeout(RESPONSE_TIMEOUT).build().expect("a client");
    let zero = || AtomicU64::new(0);
    let end = Instant::now() + plan.time;
    let context = Context {
        server,
        client,
        end,
        answered: zero(),
        busy: zero(),
        compared: zero(),
        hostile: zero(),
        errors: Mutex::default(),
    };
    let context = Arc::new(context);
    let mut running = JoinSet::new();
    let mut random = StdRng::seed_from_u64(plan.seed);
    legal::begin(&context, &mut random, &mut running).await;
    hostile::begin(&context, &mut random, &mut running);
    let samples = sample(&context).await;
    while let Some(done) = running.join_next().await {
        done.expect("a client ends");
    }
    report(&context, plan, samples).await
}

async fn sample(context: &Context) -> Vec<u64> {
    let mut samples = Vec::new();
    while context.is_running() {
        samples.push(context.server.memory().saturating_sub(gauges::cached(&context.server).await));
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    samples
}

async fn report(context: &Context, plan: Plan, samples: Vec<u64>) -> Report {
    let peak = context.server.peak_memory();
    let unreleased = gauges::unreleased_after(&context.server, RELEASE_TIMEOUT).await;
    tokio::time::sleep(plan.calm).await;
    let fifth = samples.len() / 5;
    let median = |mut part: Vec<u64>| {
        part.sort_unstable();
        part.get(part.len() / 2).copied().unwrap_or(0)
    };
    let medians = [1, 4].map(|nth| median(samples.iter().skip(nth * fifth).take(fifth).copied().collect()));
    let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
    Report {
        answered: count(&context.answered),
        busy: count(&context.busy),
        compared: count(&context.compared),
        hostile: count(&context.hostile),
        errors: context.errors.lock().expect("the lock is not poisoned").clone(),
        peak,
        medians,
        retained: context.server.memory(),
        unreleased,
    }
}

impl Context {
    fn is_running(&self) -> bool {
        Instant::now() < self.end
    }

    /// Sends a request and waits for the response; `None` if the server asked for a retry, or if the request failed,
    /// which is recorded.
    async fn exchange(
        &self,
        method: Method,
        target: &str,
        media_type: &str,
        body: impl Into<Body>,
    ) -> Option<Response> {
        let request = self.client.request(method.clone(), self.server.url(target)).header("content-type", media_type);
        let response = async {
            let response = request.body(body).send().await?;
            Ok::<_, reqwest::Error>(Response { status: response.status(), body: response.bytes().await? })
        };
        match response.await {
            Ok(response) if matches!(response.status.as_u16(), 429 | 503) => {
                self.busy.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(20)).await;
                None
            }
            Ok(response) => {
                self.answered.fetch_add(1, Ordering::Relaxed);
                if response.status == StatusCode::INTERNAL_SERVER_ERROR {
                    self.report_error(format!("{method} {target}: {}", String::from_utf8_lossy(&response.body)));
                }
                Some(response)
            }
            Err(error) => {
                let hung = if error.is_timeout() { "hangs" } else { "fails" };
                self.report_error(format!("{method} {target} {hung}: {error:?}"));
                None
            }
        }
    }

    /// Compares a response with the expected one.
    fn compare(&self, what: &str, actual: &[u8], expected: &[u8]) {
        self.compared.fetch_add(1, Ordering::Relaxed);
        if actual != expected {
            let offset = actual.iter().zip(expected).position(|(actual, expected)| actual != expected);
            let [actual, expected] = [actual.len(), expected.len()];
            self.report_error(format!(
                "{what}: received {actual} bytes, expected {expected}; first difference at {offset:?}"
            ));
        }
    }

    fn report_error(&self, what: String) {
        let mut errors = self.errors.lock().expect("the lock is not poisoned");
        if errors.len() < 100 {
            errors.push(what);
        }
    }
}

/// Waits for a random time.
async fn pause(random: &mut StdRng, most: u64) {
    tokio::time::sleep(Duration::from_millis(random.random_range(0..most.max(1)))).await;
}

impl Report {
    /// True if all responses were correct and all resources were released.
    pub fn is_ok(&self) -> bool {
        let [before, after] = self.medians;
        let drifted = after > before + MAX_DRIFT;
        self.errors.is_empty() && self.unreleased.is_empty() && self.retained <= MAX_RETAINED && !drifted
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [peak, retained, before, after] =
            [self.peak, self.retained, self.medians[0], self.medians[1]].map(|bytes| bytes >> 20);
        let Self { answered, busy, compared, hostile, .. } = self;
        writeln!(
            f,
            "{answered} requests answered, {compared} compared, {busy} asked to retry, {hostile} hostile connections"
        )?;
        writeln!(
            f,
            "memory: {before} MiB early and {after} MiB late without the chunk cache; with it {peak} MiB at the peak, \
             {retained} MiB retained"
        )?;
        self.errors.iter().try_for_each(|error| writeln!(f, "error: {error}"))?;
        self.unreleased.iter().try_for_each(|line| writeln!(f, "unreleased: {line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_lists_every_failed_condition() {
        let right = Report { medians: [100 << 20, 200 << 20], retained: 300 << 20, ..Report::default() };
        assert!(right.is_ok());
        for failed in [
            Report { medians: [100 << 20, 229 << 20], ..right.clone() },
            Report { retained: 301 << 20, ..right.clone() },
            Report { errors: vec!["a".to_owned()], ..right.clone() },
            Report { unreleased: vec!["a 1".to_owned()], ..right.clone() },
        ] {
            assert!(!failed.is_ok(), "{failed}");
        }
    }
}
