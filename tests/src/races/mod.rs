//! Writes that race with what changes or copies their array: nothing that was erased, replaced or cut off comes back, and every copy is of one commit.
//!
//! Each round has an array of its own. Its requests are determined by a seed, and some of them are made at the same time. Of each one it is noted when it began and when it was answered; a
//! round is right if there is an order of all that was acknowledged, and of some of which the answer was lost, that agrees with these times and explains every reading. An array has nothing
//! beyond the chunks that it has, and there are no keys below an erased group.

mod copies;
mod history;
mod kinds;
mod layout;
mod model;
mod round;
mod site;
mod strays;

use std::{fmt, path::Path, sync::Arc, time::Duration};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::task::JoinSet;

use crate::server::{Launch, zarrd_with};
pub use kinds::Race;
use round::Round;
use site::Site;

/// The parameter with which a declaration takes the place of another node.
const REPLACE: &str = "overwrite";

/// The most findings of a kind that are told with all that led to them.
const MOST_EXAMPLES: usize = 3;

/// The rounds of a race that are run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The race.
    pub race: Race,
    /// The kind of index, `sled` or `redb`.
    pub index: String,
    /// The number of rounds.
    pub rounds: u64,
    /// The number of rounds that are run at the same time.
    pub abreast: u64,
    /// The server's fate in their middle.
    pub end: Ending,
    /// The seed of the requests of the first round.
    pub seed: u64,
    /// The requests of the other rounds.
    pub others: Others,
}

/// The fate of the server while requests race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It goes on.
    Alive,
    /// It is killed after a time up to this, and started again on the same store.
    Killed(Duration),
}

/// The requests of the rounds after the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Those of the seeds that follow.
    OfTheirOwn,
    /// The same.
    TheSame,
}

/// A kind of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Elements have what must be gone, or lack what must be there.
    Resurrected,
    /// Something that is stored cannot be decoded.
    Undecodable,
    /// What was read is of several commits.
    Mixed,
    /// Keys that no node has.
    LeftBehind,
    /// Answers that no race explains, or none.
    Other,
    /// Rounds that are too long to be judged.
    Undecided,
}

/// Something wrong.
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
    /// The finding in words, with all requests of the round.
    pub text: String,
}

/// The outcome of a race.
#[derive(Clone, Debug)]
pub struct Report {
    /// The race.
    pub race: Race,
    /// The number of rounds.
    pub rounds: u64,
    /// Writes and appends that were acknowledged.
    pub acknowledged: u64,
    /// Requests that may have been done, but were not answered.
    pub interrupted: u64,
    /// Readings and copies that were compared with what they can be.
    pub images: u64,
    /// Copies whose clients were told that they were made.
    pub copied: u64,
    /// Copies whose clients left, or were not told since the server was killed.
    pub left: u64,
    /// All that is wrong, one of a kind for a round.
    pub findings: Vec<Finding>,
}

impl Plan {
    /// A short run of a race.
    pub fn of(race: Race) -> Self {
        let (seed, others) = (u64::from(rand::random::<u32>()), Others::OfTheirOwn);
        Self { race, index: "sled".into(), rounds: 200, abreast: 16, end: Ending::Alive, seed, others }
    }

    fn round(&self, number: u64) -> Round {
        let seed = match self.others {
            Others::OfTheirOwn => self.seed.wrapping_add(number),
            Others::TheSame => self.seed,
        };
        Round::new(self.race, number, seed)
    }
}

/// Runs a race on a new store in `dir`.
///
/// # Panics
///
/// Where the server does not start or stop, or its store is damaged in the end.
pub async fn run(plan: &Plan, dir: &Path) -> Report {
    let store = format!("{}:{}", plan.index, dir.display());
    let launch = Launch::of(&store);
    let mut report = Report::new(plan);
    let mut server = launch.start();
    let mut random = StdRng::seed_from_u64(plan.seed);
    let numbers: Vec<u64> = (0..plan.rounds).collect();
    for numbers in numbers.chunks(usize::try_from(plan.abreast.max(1)).expect("few at a time")) {
        let rounds: Vec<_> = numbers.iter().map(|number| Arc::new(plan.round(*number))).collect();
        let site = Site::of(&server);
        finish(&mut each(&rounds, |round, site| async move { round.set_up(&site).await }, &site)).await;
        let mut racing = each(&rounds, |round, site| async move { round.race(&site).await }, &site);
        if let Ending::Killed(longest) = plan.end {
            tokio::time::sleep(longest.mul_f64(random.random_range(0.0..1.0))).await;
            server.kill();
            finish(&mut racing).await;
            server = launch.start();
            rounds.iter().for_each(|round| round.killed());
        }
        finish(&mut racing).await;
        let site = Site::of(&server);
        finish(&mut each(&rounds, |round, site| async move { round.close(&site).await }, &site)).await;
        rounds.iter().for_each(|round| report.add(round));
    }
    report.add_left(&Site::of(&server)).await;
    server.stop();
    let checked = zarrd_with(["check", "--store", &store]);
    assert_eq!(checked.code, Some(0), "zarrd check found damage: {checked:?}");
    report
}

/// Begins something of all rounds.
fn each<F: Future<Output = ()> + Send + 'static>(
    rounds: &[Arc<Round>],
    begin: impl Fn(Arc<Round>, Site) -> F,
    site: &Site,
) -> JoinSet<()> {
    rounds.iter().map(|round| begin(round.clone(), site.clone())).collect()
}

async fn finish(running: &mut JoinSet<()>) {
    while let Some(done) = running.join_next().await {
        done.expect("a round does not panic");
    }
}

impl Report {
    fn new(plan: &Plan) -> Self {
        let Plan { race, rounds, .. } = *plan;
        Self { race, rounds, acknowledged: 0, interrupted: 0, images: 0, copied: 0, left: 0, findings: Vec::new() }
    }

    /// True where nothing is wrong.
    pub fn is_right(&self) -> bool {
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
        let (copied, left) = round.count_copies();
        self.copied += copied;
        self.left += left;
        self.findings.append(&mut round.findings.lock().expect("nobody panics with it"));
    }

    /// Looks for what came back after all was erased.
    async fn add_left(&mut self, site: &Site) {
        let is_ours = |key: &String| key.split('/').count() > 2;
        let found = match site.keys("").await {
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
        let Self { race, rounds, acknowledged, interrupted, images, copied, left: alone, findings } = self;
        let [resurrected, undecodable, mixed, left, other, undecided] = Kind::ALL.map(|kind| self.count(kind));
        let name = race.name();
        writeln!(
            f,
            "{name}: {rounds} rounds, {acknowledged} writes acknowledged, {interrupted} requests interrupted, {images} readings compared"
        )?;
        if copied + alone > 0 {
            writeln!(f, "{name}: {copied} copies made, {alone} whose clients were not told")?;
        }
        writeln!(
            f,
            "{name}: {resurrected} resurrected, {undecodable} undecodable, {mixed} mixed, {left} left behind, \
             {other} other, {undecided} undecided"
        )?;
        for kind in Kind::ALL {
            for Finding { round, seed, text, .. } in
                findings.iter().filter(|finding| finding.kind == kind).take(MOST_EXAMPLES)
            {
                writeln!(f, "{kind:?}, round {round} (--race {name} --replay {seed}): {text}")?;
            }
        }
        Ok(())
    }
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Resurrected, Self::Undecodable, Self::Mixed, Self::LeftBehind, Self::Other, Self::Undecided];
}
