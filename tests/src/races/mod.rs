//! Writes that race with changes and copies of their array: erased, replaced or truncated elements must not return, and
//! every copy must reflect one commit.
//!
//! Each round has its own array. A seed determines its requests, some of which are sent concurrently. The start and the
//! response of each request are recorded; a round is consistent if some order of the acknowledged requests, and of some
//! requests without a response, agrees with these times and explains every read. An array has no keys outside its chunk
//! grid, and an erased group has no keys below it.

mod client;
mod consolidated;
mod copies;
mod history;
mod kinds;
mod layout;
mod model;
mod round;
mod served;
mod strays;

use std::{fmt, path::Path, sync::Arc, time::Duration};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::task::JoinSet;

use crate::server::zarrd_with;
use client::ServerClient;
pub use kinds::Race;
use round::Round;
use served::Served;
pub use served::{BucketOf, Checks, Engines};

/// The query parameter with which a declaration replaces another node.
const REPLACE: &str = "overwrite";

/// The maximum number of findings per kind that are reported in full.
const MAX_EXAMPLES: usize = 3;

/// The configuration of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The race.
    pub race: Race,
    /// The kind of index, `sled` or `redb`; `memory` for a store in memory, which is not killed; `folder` for one that is written
    /// key by key.
    pub index: String,
    /// The number of rounds.
    pub rounds: u64,
    /// The number of concurrent rounds.
    pub concurrency: u64,
    /// The engines that requests go to.
    pub engines: Engines,
    /// The fate of the server during the rounds.
    pub end: Ending,
    /// The seed of the first round.
    pub seed: u64,
    /// The seeds of the other rounds.
    pub other_seeds: OtherSeeds,
}

/// The fate of the server while requests race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It keeps running.
    Alive,
    /// It is killed after a random time up to this duration, and restarted on the same store.
    Killed(Duration),
}

/// The seeds of the rounds after the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherSeeds {
    /// Consecutive seeds.
    Consecutive,
    /// The same seed.
    Same,
}

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Elements that must be gone, or are missing.
    Resurrected,
    /// Stored data cannot be decoded.
    Undecodable,
    /// A read mixes several commits.
    Mixed,
    /// Keys that belong to no node.
    LeftBehind,
    /// Unexpected or missing responses.
    Other,
    /// Rounds that are too long to check.
    Undecided,
}

/// A detected violation.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The kind.
    pub kind: Kind,
    /// The race.
    pub race: Race,
    /// The number of the round.
    pub round: u64,
    /// The seed of the requests of the round.
    pub seed: u64,
    /// A description, with all requests of the round.
    pub text: String,
}

/// The results of a race.
#[derive(Clone, Debug)]
pub struct Report {
    /// The race.
    pub race: Race,
    /// The number of rounds.
    pub rounds: u64,
    /// Acknowledged writes and appends.
    pub acknowledged: u64,
    /// Requests that may have been executed without a response.
    pub interrupted: u64,
    /// Reads and copies that were checked.
    pub images: u64,
    /// Confirmed copies.
    pub copied: u64,
    /// Copies whose clients disconnected, or received no response because the server was killed.
    pub unconfirmed: u64,
    /// All violations, one of each kind per round.
    pub findings: Vec<Finding>,
}

impl Plan {
    /// The plan of a short run.
    pub fn of(race: Race) -> Self {
        let (seed, other_seeds) = (u64::from(rand::random::<u32>()), OtherSeeds::Consecutive);
        let (engines, end) = (Engines::Program, Ending::Alive);
        Self { race, index: "sled".into(), rounds: 200, concurrency: 16, engines, end, seed, other_seeds }
    }

    fn round(&self, number: u64) -> Round {
        let seed = match self.other_seeds {
            OtherSeeds::Consecutive => self.seed.wrapping_add(number),
            OtherSeeds::Same => self.seed,
        };
        Round::new(self.race, number, seed)
    }
}

/// Runs a race on a new store in `dir`.
///
/// # Panics
///
/// If the server does not start or stop, or its store is damaged in the end.
pub async fn run(plan: &Plan, dir: &Path) -> Report {
    let store = match plan.index.as_str() {
        "memory" => "memory:".to_owned(),
        "folder" => format!("dir:{}?writes=yes", dir.display()),
        index => format!("{index}:{}", dir.display()),
    };
    let mut report = Report::new(plan);
    let mut served = Served::start(plan, &store, dir).await;
    let mut random = StdRng::seed_from_u64(plan.seed);
    let numbers: Vec<u64> = (0..plan.rounds).collect();
    for numbers in numbers.chunks(usize::try_from(plan.concurrency.max(1)).expect("few at a time")) {
        let rounds: Vec<_> = numbers.iter().map(|number| Arc::new(plan.round(*number))).collect();
        let client = served.client();
        finish(&mut each(&rounds, |round, client| async move { round.set_up(&client).await }, &client)).await;
        let mut racing = each(&rounds, |round, client| async move { round.race(&client).await }, &client);
        if let Ending::Killed(longest) = plan.end {
            tokio::time::sleep(longest.mul_f64(random.random_range(0.0..1.0))).await;
            let launch = served.kill().expect("it is a program");
            finish(&mut racing).await;
            let server = launch.start();
            served = Served::Program { launch, server };
            rounds.iter().for_each(|round| round.killed());
        }
        finish(&mut racing).await;
        let client = served.client();
        finish(&mut each(&rounds, |round, client| async move { round.finish_requests(&client).await }, &client)).await;
        rounds.iter().for_each(|round| report.add(round));
        served.discard_records();
    }
    report.find_remaining_keys(&served.client()).await;
    served.stop().await;
    if plan.index == "memory" || matches!(plan.engines, Engines::Bucket(BucketOf::Tests | BucketOf::TestsWithLosses)) {
        return report;
    }
    let checked = zarrd_with(["check", "--store", &store]);
    assert_eq!(checked.code, Some(0), "zarrd check found damage: {checked:?}");
    report
}

/// Starts a task for every round.
fn each<F: Future<Output = ()> + Send + 'static>(
    rounds: &[Arc<Round>],
    begin: impl Fn(Arc<Round>, ServerClient) -> F,
    client: &ServerClient,
) -> JoinSet<()> {
    rounds.iter().map(|round| begin(round.clone(), client.clone())).collect()
}

async fn finish(running: &mut JoinSet<()>) {
    while let Some(done) = running.join_next().await {
        done.expect("a round does not panic");
    }
}

impl Report {
    fn new(plan: &Plan) -> Self {
        let Plan { race, rounds, .. } = *plan;
        Self {
            race,
            rounds,
            acknowledged: 0,
            interrupted: 0,
            images: 0,
            copied: 0,
            unconfirmed: 0,
            findings: Vec::new(),
        }
    }

    /// True if there are no violations.
    pub fn is_ok(&self) -> bool {
        self.findings.is_empty()
    }

    /// The number of findings of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.findings.iter().filter(|finding| finding.kind == kind).count()
    }

    fn add(&mut self, round: &Round) {
        let history = round.history();
        self.acknowledged += history.acknowledged();
        self.interrupted += history.interrupted();
        self.images += history.images();
        let (copied, unconfirmed) = round.count_copies();
        self.copied += copied;
        self.unconfirmed += unconfirmed;
        self.findings.append(&mut round.findings.lock().expect("the lock is not poisoned"));
    }

    /// Finds keys that exist after everything was erased.
    async fn find_remaining_keys(&mut self, client: &ServerClient) {
        let is_ours = |key: &String| key.split('/').count() > 2;
        let found = match client.keys("").await {
            Ok(keys) => Some((Kind::LeftBehind, keys.into_iter().filter(is_ours).collect::<Vec<_>>())),
            Err(reply) => Some((Kind::Other, vec![format!("{reply:?}")])),
        };
        let found = found.filter(|(_, keys)| !keys.is_empty());
        let finding = |(kind, keys)| {
            let text = format!("after all was erased: {keys:?}");
            Finding { kind, race: self.race, round: self.rounds, seed: 0, text }
        };
        self.findings.extend(found.map(finding));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { race, rounds, acknowledged, interrupted, images, copied, unconfirmed, findings } = self;
        let [resurrected, undecodable, mixed, left_behind, other, undecided] = Kind::ALL.map(|kind| self.count(kind));
        let name = race.name();
        writeln!(
            f,
            "{name}: {rounds} rounds, {acknowledged} writes acknowledged, {interrupted} requests interrupted, \
             {images} reads compared"
        )?;
        if copied + unconfirmed > 0 {
            writeln!(f, "{name}: {copied} copies confirmed, {unconfirmed} with unknown outcome")?;
        }
        writeln!(
            f,
            "{name}: {resurrected} resurrected, {undecodable} undecodable, {mixed} mixed, {left_behind} left behind, \
             {other} other, {undecided} undecided"
        )?;
        for kind in Kind::ALL {
            for Finding { round, seed, text, .. } in
                findings.iter().filter(|finding| finding.kind == kind).take(MAX_EXAMPLES)
            {
                writeln!(f, "{kind:?}, round {round} (--race {name} --replay {seed}): {text}")?;
            }
        }
        Ok(())
    }
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Resurrected, Self::Undecodable, Self::Mixed, Self::LeftBehind, Self::Other, Self::Undecided];
}
