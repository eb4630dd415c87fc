//! Servers over one bucket of a cluster, and readers that check every byte, while nodes of the cluster and servers are
//! killed.
//!
//! Each server reads from a node of its own. In each round a node is killed and comes back, and then another server.
//! Readers take another server after a failure. Only a server that lost its node, or that is killed itself, may fail;
//! the others may answer 503 while the cluster, which has yet to notice that a node is lost, does so.

mod content;
mod readers;

use std::{
    collections::BTreeSet,
    fmt,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::{Method, StatusCode, header::ETAG};

pub use content::{Content, VOLUME, write_volume};
pub use readers::Counts;

use crate::{
    garage::Cluster,
    server::{Launch, Server},
};

/// The number of nodes, and of servers.
pub const NODES: usize = 3;

/// The options of a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The number of readers.
    pub readers: usize,
    /// The number of rounds.
    pub rounds: usize,
    /// The duration of each phase of a round.
    pub stay: Duration,
    /// The seed of the readers' choices.
    pub seed: u64,
}

/// The counts of all phases.
#[derive(Debug, Default)]
pub struct Report {
    phases: Vec<Phase>,
    /// The targets whose entity tags were compared, and those that had one.
    tags: (usize, usize),
}

/// A part of a round.
#[derive(Debug)]
struct Phase {
    name: String,
    /// The server that may fail.
    may_fail: Option<usize>,
    /// The failure that others may have.
    tolerated: &'static str,
    counts: Counts,
}

/// The running servers, and what their readers share.
struct Run<'a> {
    launches: &'a [Launch],
    servers: Vec<Option<Server>>,
    addresses: Arc<Mutex<Vec<SocketAddr>>>,
    counts: Arc<Mutex<Counts>>,
    plan: Plan,
    report: Report,
}

/// Servers of zarrd, each over its node of a cluster, that ask the bucket each time.
pub fn launches(cluster: &Cluster) -> Vec<Launch> {
    let launch = |number| cluster.s3(number).launch("s3://bucket?recheck=0").arg("--chunk-cache").arg("4MiB");
    (0..NODES).map(launch).collect()
}

/// Runs all rounds.
///
/// # Panics
///
/// If a node or a server does not start, or if a server does not recover.
pub async fn run(plan: Plan, cluster: &mut Cluster, launches: &[Launch], content: Content) -> Report {
    let servers: Vec<Server> = launches.iter().map(Launch::start).collect();
    let addresses = servers.iter().map(Server::address).collect();
    let mut run = Run {
        launches,
        servers: servers.into_iter().map(Some).collect(),
        addresses: Arc::new(Mutex::new(addresses)),
        counts: Arc::default(),
        plan,
        report: Report::default(),
    };
    let (content, over) = (Arc::new(content), Arc::new(AtomicBool::new(false)));
    let readers: Vec<_> = (0..plan.readers as u64)
        .map(|number| {
            let reader = readers::Reader::new(plan.seed ^ (number << 32), &run.addresses, &run.counts, &content);
            tokio::spawn(reader.read_until(Arc::clone(&over)))
        })
        .collect();
    run.phase("all run", None).await;
    for round in 0..plan.rounds {
        run.round(round, cluster).await;
    }
    over.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.expect("a reader ends");
    }
    run.compare_tags(&content).await;
    run.report
}

impl Run<'_> {
    async fn round(&mut self, round: usize, cluster: &mut Cluster) {
        let (node, server) = (round % NODES, (round + 1) % NODES);
        cluster.kill(node);
        self.phase(&format!("node {node} killed"), Some(node)).await;
        cluster.start(node);
        cluster.await_health(node);
        self.phase(&format!("node {node} back"), Some(node)).await;
        self.servers[server].take().expect("it runs").kill();
        self.phase(&format!("zarrd {server} killed"), Some(server)).await;
        let started = self.launches[server].start();
        self.addresses.lock().expect("no reader panics")[server] = started.address();
        self.servers[server] = Some(started);
        self.phase(&format!("zarrd {server} back"), Some(server)).await;
        self.phase("all run", None).await;
    }

    /// Waits for the readers of a phase.
    async fn phase(&mut self, name: &str, may_fail: Option<usize>) {
        tokio::time::sleep(self.plan.stay).await;
        let counts = std::mem::take(&mut *self.counts.lock().expect("no reader panics"));
        let tolerated = if name.starts_with("node") { "503" } else { "" };
        let phase = Phase { name: name.to_owned(), may_fail, tolerated, counts };
        crate::skip::note(&phase);
        self.report.phases.push(phase);
    }

    /// Asserts that all servers answer, with the same entity tags.
    async fn compare_tags(&mut self, content: &Content) {
        for target in content.targets() {
            let mut tags = BTreeSet::new();
            for server in self.servers.iter().flatten() {
                let answer = server.request(Method::HEAD, &target).send().await.expect("an answer");
                assert_eq!(answer.status(), StatusCode::OK, "{target}");
                tags.insert(answer.headers().get(ETAG).cloned());
            }
            assert_eq!(tags.len(), 1, "{target}: {tags:?}");
            let (all, tagged) = &mut self.report.tags;
            *all += 1;
            *tagged += usize::from(tags.first().is_some_and(Option::is_some));
        }
    }
}

impl Report {
    /// True if all bytes were right, each read had an answer in the end, and no server failed without a reason.
    pub fn is_ok(&self) -> bool {
        self.phases.iter().all(Phase::is_ok)
    }
}

impl Phase {
    fn is_ok(&self) -> bool {
        let Counts { wrong, given_up, failures, .. } = &self.counts;
        let is_expected = |server: usize, kind: &str| Some(server) == self.may_fail || kind == self.tolerated;
        wrong.is_empty() && *given_up == 0 && failures.keys().all(|(server, kind)| is_expected(*server, kind))
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.is_ok() { "" } else { "   <-- FAILED" };
        write!(f, "{:16} {}{verdict}", self.name, self.counts)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = |of: fn(&Counts) -> u64| self.phases.iter().map(|phase| of(&phase.counts)).sum::<u64>();
        let failures = sum(|counts| counts.failures.values().sum());
        let (targets, tagged) = self.tags;
        writeln!(
            f,
            "{} reads with {} MiB were right, {} wrong, {} without an answer; {failures} attempts failed and were \
             repeated",
            sum(|counts| counts.right),
            sum(|counts| counts.bytes) >> 20,
            sum(|counts| counts.wrong.len() as u64),
            sum(|counts| counts.given_up),
        )?;
        writeln!(f, "ETags of {targets} values and arrays are the same on all servers ({tagged} have one)")
    }
}
