//! A full disk, filled by the store or by another program, while the store is written, erased, killed and started in
//! random order.
//!
//! The outcomes of the steps are recorded and compared with the store repeatedly. Regardless of the disk, starts must
//! succeed, acknowledged data must be present, erases must return 2xx, and values must be accepted again, without a
//! restart, once space is available.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fmt::Debug,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use http::StatusCode;
use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::{
    disk::SmallDisk,
    generated::Generated,
    server::{Ended, Launch, Server, zarrd_with},
};

/// The configuration of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The kind of index, `sled` or `redb`.
    pub index: String,
    /// The maximum size of a value, in bytes; values are up to a quarter smaller.
    pub value_bytes: u64,
    /// The number of steps.
    pub steps: u32,
    /// The seed of the random choices.
    pub seed: u64,
}

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The number of acknowledged sets and erases.
    pub acknowledged: u64,
    /// The number of sets rejected for lack of space.
    pub out_of_space: u64,
    /// The number of starts, and of starts with less than 64 KiB free.
    pub starts: (u32, u32),
    /// The number of responses with 503, which occur while an index reopens.
    pub busy: u64,
    /// The longest duration of an erase.
    pub slowest_erase: Duration,
    /// The tenths of the values that had to be erased until values were accepted again.
    pub erased_for_recovery: u64,
    /// The longest time until values were accepted after all were erased.
    pub slowest_recovery: Duration,
    /// Violated expectations.
    pub errors: Vec<String>,
}

/// The state of a run.
struct Run<'a> {
    plan: &'a Plan,
    disk: &'a SmallDisk,
    random: StdRng,
    server: Option<Server>,
    /// The seed and the size of each value.
    values: BTreeMap<String, (u64, u64)>,
    /// Keys whose last request was interrupted, with the state that it would have produced.
    uncertain: BTreeMap<String, Option<(u64, u64)>>,
    next: u64,
    report: Report,
    history: Vec<String>,
}

const CONCURRENT_SETS: usize = 8;
const MIN_FREE_AT_START: u64 = 64 << 10;
/// The time after which a request to a killed server has failed.
const KILLED_TIMEOUT: Duration = Duration::from_secs(30);
/// The time within which a store must accept values once there is space.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(20);

/// Runs the steps on a new store on the disk.
pub async fn run(plan: &Plan, disk: &SmallDisk) -> Report {
    let mut steps = Run {
        plan,
        disk,
        random: StdRng::seed_from_u64(plan.seed),
        server: None,
        values: BTreeMap::new(),
        uncertain: BTreeMap::new(),
        next: 0,
        report: Report::default(),
        history: Vec::new(),
    };
    steps.start();
    for _ in 0..plan.steps {
        steps.step().await;
        if steps.server.is_none() {
            steps.start();
        }
        if steps.report.errors.len() > 20 || steps.server.is_none() {
            break;
        }
    }
    steps.check_all().await;
    steps.recovers_after_erasing().await;
    steps.check_all().await;
    steps.stop();
    steps.report
}

impl Run<'_> {
    async fn step(&mut self) {
        match self.random.random_range(0..100) {
            0..20 => self.fill_by_values().await,
            20..32 => self.set_values(20).await,
            32..42 => self.fill_by_other_program(),
            42..47 => self.disk.remove_filler(),
            47..60 => self.erase_keys().await,
            60..67 => self.erase_prefix().await,
            67..75 => self.kill_idle(),
            75..82 => self.kill_busy().await,
            82..90 => self.stop(),
            90..95 => self.check_all().await,
            _ => self.recovers_after_erasing().await,
        }
    }

    fn start(&mut self) {
        let free = self.disk.free();
        self.report.starts.0 += 1;
        self.report.starts.1 += u32::from(free < MIN_FREE_AT_START);
        self.history.push(format!("start with {free} bytes free"));
        let store = format!("{}:{}", self.plan.index, self.disk.store().display());
        match Launch::of(store).arg("--scrub=1s").try_start() {
            Ok(server) => self.server = Some(server),
            Err(ended) => self.record_error(format!("does not start with {free} bytes free: {ended:?}")),
        }
    }

    fn stop(&mut self) {
        let Some(server) = self.server.take() else { return };
        let free = self.disk.free();
        self.history.push(format!("stop with {free} bytes free"));
        server.terminate();
        let Ended { code, stderr, .. } = server.wait();
        self.run_check(&stderr);
        // A store that cannot be closed reports it, and opens next time.
        if code != Some(0) && !stderr.contains("out of") && !stderr.contains("space") {
            self.record_error(format!("does not stop with {free} bytes free: {code:?}: {stderr}"));
        }
        self.recover();
    }

    /// Recovers the store into a directory elsewhere. Nothing of it is doubtful or lost, however full its disk is.
    fn recover(&mut self) {
        let to = tempfile::tempdir().expect("a directory");
        let ended =
            zarrd_with([OsStr::new("recover"), self.disk.store().as_os_str(), to.path().join("to").as_os_str()]);
        if ended.code != Some(0) {
            self.record_error(format!("is not recovered: {ended:?}"));
        }
    }

    fn kill_idle(&mut self) {
        let Some(server) = self.server.take() else { return };
        self.history.push(format!("kill with {} bytes free", self.disk.free()));
        self.run_check(&server.log());
        server.kill();
    }

    /// Kills the server while values are being set.
    async fn kill_busy(&mut self) {
        let Some(server) = self.server.take() else { return };
        self.history.push(format!("kill under load with {} bytes free", self.disk.free()));
        let new = self.new_values(200);
        let delay = Duration::from_millis(self.random.random_range(0..300));
        let server = &server;
        let setting = stream::iter(new).map(|(key, value)| async move {
            // The server is killed within 300 ms, and a client does not always learn that.
            let put = server.request(http::Method::PUT, &format!("/store/{key}")).timeout(KILLED_TIMEOUT);
            let put = put.body(bytes(value)).send().await;
            (key, value, put.map(|answer| answer.status()))
        });
        let mut setting = setting.buffer_unordered(CONCURRENT_SETS);
        let started = Instant::now();
        let mut killed = false;
        while let Some((key, value, status)) = setting.next().await {
            match status {
                Ok(status) if status.is_success() => drop(self.values.insert(key, value)),
                Ok(_) => {}
                Err(_) => drop(self.uncertain.insert(key, Some(value))),
            }
            if started.elapsed() > delay && !killed {
                server.signal(rustix::process::Signal::KILL);
                killed = true;
            }
        }
    }

    /// Sets values until one is rejected.
    async fn fill_by_values(&mut self) {
        let before = self.report.out_of_space;
        while self.report.out_of_space == before && self.report.errors.len() < 20 {
            self.set_values(100).await;
        }
        self.history.push(format!("filled with values, {} bytes free", self.disk.free()));
    }

    fn fill_by_other_program(&mut self) {
        let spare = if self.random.random_bool(0.7) { 0 } else { self.random.random_range(0..2 << 20) };
        self.disk.fill(spare);
        self.history.push(format!("filled by others, {} bytes free", self.disk.free()));
    }

    async fn set_values(&mut self, count: usize) {
        let new = self.new_values(count);
        let Some(server) = &self.server else { return };
        let setting = stream::iter(new).map(|(key, value)| async move {
            let answer = server.put(&format!("/store/{key}"), bytes(value)).await;
            let status = answer.status();
            (key, value, status, answer.text().await.unwrap_or_default())
        });
        let answers: Vec<_> = setting.buffer_unordered(CONCURRENT_SETS).collect().await;
        for (key, value, status, text) in answers {
            match status {
                status if status.is_success() => {
                    self.report.acknowledged += 1;
                    self.values.insert(key, value);
                }
                StatusCode::INSUFFICIENT_STORAGE => self.report.out_of_space += 1,
                StatusCode::SERVICE_UNAVAILABLE => self.report.busy += 1,
                _ => self.record_error(format!("a set is answered with {status}: {text}")),
            }
        }
    }

    fn new_values(&mut self, count: usize) -> Vec<(String, (u64, u64))> {
        let value = |steps: &mut Self| {
            steps.next += 1;
            // Some keys are overwritten.
            let number =
                if steps.random.random_bool(0.2) { steps.random.random_range(0..steps.next) } else { steps.next };
            let size = steps.random.random_range(steps.plan.value_bytes * 3 / 4..=steps.plan.value_bytes);
            (format!("values/{}/{number}", number % 10), (steps.random.random(), size))
        };
        let new: BTreeMap<_, _> = (0..count).map(|_| value(self)).collect();
        new.into_iter().collect()
    }

    async fn erase_keys(&mut self) {
        let keys: Vec<_> = self.values.keys().cloned().collect();
        if keys.is_empty() {
            return;
        }
        self.history.push(format!("erase keys with {} bytes free", self.disk.free()));
        for _ in 0..self.random.random_range(1..40) {
            let key = keys[self.random.random_range(0..keys.len())].clone();
            if self.erase(&key).await {
                self.values.remove(&key);
            }
        }
    }

    async fn erase_prefix(&mut self) {
        let prefix = format!("values/{}/", self.random.random_range(0..10));
        self.history.push(format!("erase {prefix} with {} bytes free", self.disk.free()));
        if self.erase(&prefix).await {
            self.values.retain(|key, _| !key.starts_with(&prefix));
        }
    }

    /// Returns true if an erase was acknowledged.
    async fn erase(&mut self, what: &str) -> bool {
        let Some(server) = &self.server else { return false };
        let started = Instant::now();
        loop {
            let answer = server.delete(&format!("/store/{what}")).await;
            let status = answer.status();
            let text = answer.text().await.unwrap_or_default();
            let duration = started.elapsed();
            self.report.slowest_erase = self.report.slowest_erase.max(duration);
            if status.is_success() || status == StatusCode::NOT_FOUND {
                self.report.acknowledged += 1;
                return true;
            }
            // A reopening index responds soon.
            if status != StatusCode::SERVICE_UNAVAILABLE || duration > RECOVERY_TIMEOUT {
                let free = self.disk.free();
                self.record_error(format!(
                    "erasing {what} returned {status} after {duration:?}, {free} bytes free: {text}"
                ));
                return false;
            }
            self.report.busy += 1;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Erases values until there is enough space, and expects values to be accepted again.
    async fn recovers_after_erasing(&mut self) {
        self.disk.remove_filler();
        for number in 0..10 {
            if self.accepts_value("healed").await {
                return;
            }
            let prefix = format!("values/{}/", (self.next + number) % 10);
            if self.erase(&prefix).await {
                self.values.retain(|key, _| !key.starts_with(&prefix));
            }
            self.report.erased_for_recovery = self.report.erased_for_recovery.max(number + 1);
        }
        let free = self.disk.free();
        self.history.push(format!("made space, {free} bytes free"));
        let started = Instant::now();
        while !self.accepts_value("healed").await {
            if started.elapsed() > RECOVERY_TIMEOUT {
                return self.record_error(format!("values are rejected with {} bytes free", self.disk.free()));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        self.report.slowest_recovery = self.report.slowest_recovery.max(started.elapsed());
    }

    async fn accepts_value(&self, key: &str) -> bool {
        let Some(server) = &self.server else { return true };
        server.put(&format!("/store/{key}"), "taken").await.status().is_success()
    }

    /// Compares everything with the acknowledged state.
    async fn check_all(&mut self) {
        self.settle().await;
        let Some(server) = &self.server else { return };
        let mut errors = Vec::new();
        let reading =
            stream::iter(&self.values).map(|(key, value)| async move { (key, *value, read(server, key).await) });
        let mut reading = reading.buffer_unordered(CONCURRENT_SETS);
        while let Some((key, value, found)) = reading.next().await {
            if found != Ok(Some(bytes(value).into())) {
                let found = found.map(|found| found.map(|bytes: bytes::Bytes| bytes.len()));
                errors.push(format!("LOST: {key} of {} bytes: {found:?}", value.1));
            }
        }
        drop(reading);
        let listed = listed(server).await;
        let known: BTreeSet<_> = self.values.keys().cloned().collect();
        if listed != known {
            errors.push(format!("the listing: {} keys, but {} were set", listed.len(), known.len()));
        }
        let log = server.log();
        self.run_check(&log);
        for error in errors {
            self.record_error(error);
        }
    }

    /// Determines the outcome of interrupted requests.
    async fn settle(&mut self) {
        let Some(server) = &self.server else { return };
        for (key, state) in std::mem::take(&mut self.uncertain) {
            let found = read(server, &key).await;
            if let Some(value) = state
                && found == Ok(Some(bytes(value).into()))
            {
                self.values.insert(key, value);
            }
        }
    }

    fn run_check(&mut self, log: &str) {
        if log.contains("damaged") || log.contains("read-only") {
            self.record_error(format!("the log: {log}"));
        }
    }

    fn record_error(&mut self, what: impl Debug) {
        let last: Vec<_> = self.history.iter().rev().take(8).rev().cloned().collect();
        self.report.errors.push(format!("{what:?}; after {last:?}"));
    }
}

fn bytes((seed, size): (u64, u64)) -> Vec<u8> {
    Generated::new(seed, size).bytes().into()
}

/// The value of a key. Retries while the server reopens its index.
async fn read(server: &Server, key: &str) -> Result<Option<bytes::Bytes>, StatusCode> {
    let started = Instant::now();
    loop {
        let answer = server.get(&format!("/store/{key}")).await;
        match answer.status() {
            StatusCode::OK => return Ok(answer.bytes().await.ok()),
            StatusCode::NOT_FOUND => return Ok(None),
            StatusCode::SERVICE_UNAVAILABLE if started.elapsed() < RECOVERY_TIMEOUT => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            status => return Err(status),
        }
    }
}

async fn listed(server: &Server) -> BTreeSet<String> {
    use zarrd_store::{ListableStore, PageRequest, Prefix, StoreError};
    let (store, below) = (server.store(), Prefix::parse("values/").expect("a prefix"));
    let (mut keys, mut page) = (BTreeSet::new(), PageRequest::first(1000));
    let started = Instant::now();
    loop {
        match store.list_prefix(&below, page.clone()).await {
            Ok(found) => {
                keys.extend(found.keys.into_iter().map(|entry| entry.key.as_str().to_owned()));
                match found.cursor {
                    Some(cursor) => page = PageRequest { limit: 1000, cursor: Some(cursor) },
                    None => return keys,
                }
            }
            Err(StoreError::Busy { .. }) if started.elapsed() < RECOVERY_TIMEOUT => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            Err(error) => panic!("keys can be listed: {error}"),
        }
    }
}
