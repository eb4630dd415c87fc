//! Readers that take another server after a failure.

use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use http::StatusCode;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use reqwest::Client;

use super::content::{Content, Expected};

/// The number of attempts of one read.
const ATTEMPTS: usize = 100;

/// The pause after a failed attempt.
const PAUSE: Duration = Duration::from_millis(100);

/// The time in which an attempt has to end.
const TIMEOUT: Duration = Duration::from_secs(70);

/// The observations of readers.
#[derive(Debug, Default)]
pub struct Counts {
    /// The number of reads with the right bytes.
    pub right: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The answers that were wrong.
    pub wrong: Vec<String>,
    /// The number of reads that no server answered.
    pub given_up: u64,
    /// The failed attempts, by server and kind.
    pub failures: BTreeMap<(usize, String), u64>,
    /// The longest time of a read, including its failed attempts.
    pub slowest: Duration,
}

/// A reader.
pub(super) struct Reader {
    random: StdRng,
    client: Client,
    addresses: Arc<Mutex<Vec<SocketAddr>>>,
    counts: Arc<Mutex<Counts>>,
    content: Arc<Content>,
}

impl Reader {
    pub(super) fn new(
        seed: u64,
        addresses: &Arc<Mutex<Vec<SocketAddr>>>,
        counts: &Arc<Mutex<Counts>>,
        content: &Arc<Content>,
    ) -> Self {
        Self {
            random: StdRng::seed_from_u64(seed),
            client: Client::builder().timeout(TIMEOUT).no_proxy().build().expect("a client"),
            addresses: Arc::clone(addresses),
            counts: Arc::clone(counts),
            content: Arc::clone(content),
        }
    }

    /// Reads until it is over.
    pub(super) async fn read_until(mut self, over: Arc<AtomicBool>) {
        while !over.load(Ordering::Relaxed) {
            let expected = self.content.choose(&mut self.random);
            let begin = Instant::now();
            self.read(&expected).await;
            let mut counts = self.counts.lock().expect("no reader panics");
            counts.slowest = counts.slowest.max(begin.elapsed());
        }
    }

    async fn read(&mut self, expected: &Expected) {
        let first = self.random.random_range(0..super::NODES);
        for attempt in 0..ATTEMPTS {
            let server = (first + attempt) % super::NODES;
            let address = self.addresses.lock().expect("no reader panics")[server];
            let answer = self.ask(address, &expected.target).await;
            if self.judge(server, expected, answer) {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.counts.lock().expect("no reader panics").given_up += 1;
    }

    /// Counts an answer; returns false if the read has to be repeated.
    fn judge(&self, server: usize, expected: &Expected, answer: Result<Vec<u8>, Failed>) -> bool {
        let mut counts = self.counts.lock().expect("no reader panics");
        match answer {
            Ok(bytes) if bytes == expected.bytes => {
                counts.right += 1;
                counts.bytes += bytes.len() as u64;
            }
            Ok(bytes) => counts.wrong.push(format!("server {server}, {}: {} bytes", expected.target, bytes.len())),
            // Stored nodes are never absent, and stored arrays never unknown to be some.
            Err(Failed::Status(status)) if status.is_client_error() => {
                counts.wrong.push(format!("server {server}, {}: {status}", expected.target));
            }
            Err(failed) => {
                *counts.failures.entry((server, failed.to_string())).or_default() += 1;
                return false;
            }
        }
        true
    }

    async fn ask(&self, address: SocketAddr, target: &str) -> Result<Vec<u8>, Failed> {
        let answer = self.client.get(format!("http://{address}{target}")).send().await.map_err(Failed::of)?;
        match answer.status() {
            StatusCode::OK => answer.bytes().await.map(|bytes| bytes.to_vec()).map_err(|_| Failed::Body),
            status => Err(Failed::Status(status)),
        }
    }
}

/// A failed attempt.
#[derive(Debug)]
enum Failed {
    Connection,
    Timeout,
    Body,
    Status(StatusCode),
}

impl Failed {
    fn of(error: reqwest::Error) -> Self {
        if error.is_timeout() { Self::Timeout } else { Self::Connection }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection => f.write_str("no connection"),
            Self::Timeout => f.write_str("timeout"),
            Self::Body => f.write_str("broken body"),
            Self::Status(status) => f.write_str(status.as_str()),
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { right, bytes, wrong, given_up, failures, slowest } = self;
        write!(f, "{right:6} reads, {:4} MiB, slowest {slowest:.1?}, {} wrong", bytes >> 20, wrong.len())?;
        if *given_up > 0 {
            write!(f, ", {given_up} without an answer")?;
        }
        for ((server, kind), count) in failures {
            write!(f, "; zarrd {server}: {count} × {kind}")?;
        }
        wrong.iter().take(5).try_for_each(|wrong| write!(f, "\n  wrong: {wrong}"))
    }
}
