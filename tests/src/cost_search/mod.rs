//! A search for the requests that cost the server most, for each operation by itself.
//!
//! A [`Genome`] chooses the parts of a request and of what it finds; [`Trial`] is made of it, [`Stage`] measures it, [`Measured`] rates it. The search begins anew at random now
//! and then, and climbs by changing a few genes of the best so far.

mod arrays;
mod documents;
mod fixtures;
mod genome;
mod probe;
mod rating;
mod requests;
mod selections;
mod stage;

use std::{
    fmt,
    path::Path,
    time::{Duration, Instant},
};

use rand::{RngExt, SeedableRng, rngs::StdRng};

pub use self::{
    genome::{Genome, GenomeError, Operation},
    rating::Measured,
    requests::{Request, Trial},
    stage::{Outcome, Stage},
};
use crate::skip::say;

/// How many trials without any progress end a climb.
const PLATEAU: u32 = 25;
/// How many are chosen at random before a climb.
const FIRST: u32 = 5;

/// What is searched.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The operations.
    pub operations: Vec<Operation>,
    /// How long each of them is searched.
    pub time: Duration,
    /// What the random choices are made from.
    pub seed: u64,
}

/// A request, and what it took.
#[derive(Clone, Debug)]
pub struct Found {
    /// What chose it.
    pub genome: Genome,
    /// What it took.
    pub measured: Measured,
}

/// What was found for an operation.
#[derive(Clone, Debug)]
pub struct Worst {
    /// The operation.
    pub operation: Operation,
    /// How many requests were tried.
    pub trials: u32,
    /// How many of them were not, since what they find cannot be made, or not in time.
    pub impossible: u32,
    /// The one that takes most for each kilobyte that is moved.
    pub densest: Option<Found>,
    /// The one that takes most of what it may, or more.
    pub dearest: Option<Found>,
    /// Those after which the server was not there, or said nothing.
    pub broken: Vec<String>,
}

/// The outcome of a search.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// What was found, one operation after the other.
    pub worst: Vec<Worst>,
}

/// A climb: the best so far, by two measures.
#[derive(Debug, Default)]
struct Climb {
    densest: Option<Found>,
    dearest: Option<Found>,
    tried: u32,
    stale: u32,
}

/// Searches with a new store in a directory.
pub async fn run(plan: &Plan, dir: &Path) -> Report {
    let mut stage = Stage::new(dir.to_owned(), plan.time).await;
    let mut worst = Vec::new();
    for operation in &plan.operations {
        let found = search(*operation, plan, &mut stage).await;
        say(&found);
        worst.push(found);
    }
    Report { seed: plan.seed, worst }
}

async fn search(operation: Operation, plan: &Plan, stage: &mut Stage) -> Worst {
    // Each operation has choices of its own, so that it is found again with `--only`.
    let mut random = StdRng::seed_from_u64(plan.seed ^ (operation as u64) << 32);
    let mut worst = Worst { operation, trials: 0, impossible: 0, densest: None, dearest: None, broken: Vec::new() };
    let end = Instant::now() + plan.time;
    let mut climb = Climb::default();
    while Instant::now() < end {
        let genome = climb.next(operation, &mut random);
        worst.trials += 1;
        match stage.measure(&genome).await {
            Outcome::Measured(measured) => {
                let found = Found { genome, measured };
                worst.take(&found);
                climb.take(found);
            }
            Outcome::Impossible => worst.impossible += 1,
            Outcome::Hung => worst.broken.push(format!("{genome}: no answer")),
            Outcome::Died(log) => {
                let lines: Vec<&str> = log.lines().collect();
                worst.broken.push(format!(
                    "{genome}: the server ended: {}",
                    lines[lines.len().saturating_sub(5)..].join(" / ")
                ));
            }
        }
        if climb.stale > PLATEAU {
            climb = Climb::default();
        }
    }
    for found in [&mut worst.densest, &mut worst.dearest].into_iter().flatten() {
        for _ in 0..2 {
            if found.measured.is_too_much() {
                found.measured = stage.confirm(&found.genome, found.measured).await;
            }
        }
    }
    worst
}

impl Climb {
    fn next(&self, operation: Operation, random: &mut StdRng) -> Genome {
        if self.tried == 0 && random.random() {
            return Genome::plain(operation).mutated(random);
        }
        let (Some(densest), Some(dearest)) = (&self.densest, &self.dearest) else {
            return Genome::random(operation, random);
        };
        match random.random_range(0..10) {
            _ if self.tried < FIRST => Genome::random(operation, random),
            0 => Genome::random(operation, random),
            1 => densest.genome.crossed(&dearest.genome, random).mutated(random),
            2..=4 => densest.genome.mutated(random),
            _ => dearest.genome.mutated(random),
        }
    }

    fn take(&mut self, found: Found) {
        self.tried += 1;
        self.stale += 1;
        if better(&self.densest, &found, Measured::density) {
            self.densest = Some(found.clone());
            self.stale = 0;
        }
        if better(&self.dearest, &found, Measured::excess) {
            self.dearest = Some(found);
            self.stale = 0;
        }
    }
}

impl Worst {
    fn take(&mut self, found: &Found) {
        if better(&self.densest, found, Measured::density) {
            self.densest = Some(found.clone());
        }
        if better(&self.dearest, found, Measured::excess) {
            self.dearest = Some(found.clone());
        }
    }

    /// Whether a request takes more than it may, or breaks the server.
    pub fn excess(&self) -> f64 {
        if !self.broken.is_empty() {
            return f64::INFINITY;
        }
        let found = [&self.densest, &self.dearest];
        found.into_iter().flatten().map(|found| found.measured.excess()).fold(0.0, f64::max)
    }
}

impl Report {
    /// How many times as much as it may the worst request takes; infinitely much where one breaks the server.
    pub fn excess(&self) -> f64 {
        self.worst.iter().map(Worst::excess).fold(0.0, f64::max)
    }
}

/// Whether something is worse than the worst before.
fn better(best: &Option<Found>, found: &Found, by: impl Fn(&Measured) -> f64) -> bool {
    best.as_ref().is_none_or(|best| by(&found.measured) > by(&best.measured))
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measured { status, carried, yielded, chunk, cpu, memory, latency } = self.measured;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let kib = |bytes: u64| bytes as f64 / 1024.0;
        write!(
            f,
            "{:7.3} {:9.1} {:9.3} {:9.1} {:9.1} {:9.1} {:4} {:7.2}",
            cpu.as_secs_f64(),
            mib(memory),
            latency.as_secs_f64(),
            kib(carried),
            kib(yielded),
            kib(chunk),
            status,
            self.measured.excess(),
        )
    }
}

impl fmt::Display for Worst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("{} ({})", self.operation, self.trials - self.impossible);
        let marked = |found: &Found| if found.measured.is_too_much() { "TOO MUCH" } else { "" };
        let same = |found: &Found| self.dearest.as_ref().is_some_and(|dearest| dearest.genome == found.genome);
        let densest = self.densest.iter().filter(|found| !same(found));
        for found in self.dearest.iter().chain(densest) {
            let trial = Trial::of(&found.genome, 0);
            writeln!(f, "{name:22} {found} {}\n    {}\n    {}", marked(found), found.genome, trial.request)?;
            if let Some(last) = trial.before.last() {
                writeln!(f, "    after {} requests, the last of them {last}", trial.before.len())?;
            }
            if let Some(array) = &trial.array {
                writeln!(f, "    of {} of {} stored chunks of {:?}", array.document, array.stored, array.content)?;
            }
        }
        self.broken.iter().try_for_each(|broken| writeln!(f, "{name:22} BROKEN {broken}"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}; the dearest request of each operation, and the one that takes most for each kilobyte",
            self.seed
        )?;
        writeln!(
            f,
            "{:22} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>4} {:>7}",
            "operation (trials)", "CPU s", "peak MiB", "seconds", "KiB in", "KiB out", "KiB chunk", "", "of max"
        )?;
        self.worst.iter().try_for_each(|worst| write!(f, "{worst}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(cpu: u64, carried: u64) -> Found {
        let (cpu, latency) = (Duration::from_millis(cpu), Duration::ZERO);
        let measured = Measured { status: 200, carried, yielded: 0, chunk: 0, cpu, memory: 0, latency };
        Found { genome: Genome::plain(Operation::Schema), measured }
    }

    #[test]
    fn climb_retains_the_costliest_and_the_densest() {
        let mut climb = Climb::default();
        for (cpu, carried) in [(100, 16 << 10), (300, 1 << 20), (200, 1 << 20), (90, 16 << 10)] {
            climb.take(found(cpu, carried));
        }
        let cpu = |found: &Option<Found>| found.as_ref().unwrap().measured.cpu.as_millis();
        assert_eq!((cpu(&climb.dearest), cpu(&climb.densest)), (300, 100));
        assert_eq!((climb.tried, climb.stale), (4, 2));
    }

    #[test]
    fn one_request_over_the_limit_fails_the_report() {
        let mut worst = Worst {
            operation: Operation::Schema,
            trials: 1,
            impossible: 0,
            densest: None,
            dearest: None,
            broken: Vec::new(),
        };
        worst.take(&found(1900, 1));
        assert!(worst.excess() <= 1.0);
        worst.take(&found(2100, 1));
        assert!(worst.excess() > 1.0 && worst.to_string().contains("TOO MUCH"));
        let broken = Worst { densest: None, dearest: None, broken: vec!["x".to_owned()], ..worst };
        assert!(broken.excess() > 1.0);
    }
}
