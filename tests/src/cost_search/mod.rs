//! A search for the most expensive requests of each operation.
//!
//! A [`Genome`] selects the parts of a request and of its fixtures; it is turned into a [`Trial`], measured by the
//! [`Harness`], and rated by [`Measurement`]. The search restarts at random now and then, and climbs by changing a few
//! genes of the best genome so far.

mod arrays;
mod computing;
mod documents;
mod fixtures;
mod genome;
mod harness;
mod labelled;
mod probe;
mod rating;
mod requests;
mod selections;

use std::{
    fmt,
    path::Path,
    time::{Duration, Instant},
};

use rand::{RngExt, SeedableRng, rngs::StdRng};

pub use self::{
    genome::{Effort, Genome, GenomeError, Operation},
    harness::{Harness, Outcome},
    probe::{Probe, ProbeStart},
    rating::Measurement,
    requests::{Request, Trial},
};
use crate::skip::note;

/// The number of trials without progress that ends a climb.
const MAX_STALE_TRIALS: u32 = 25;
/// The number of random trials before a climb.
const RANDOM_TRIALS: u32 = 5;

/// The configuration of a search.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The operations.
    pub operations: Vec<Operation>,
    /// The duration of the search of each operation.
    pub time: Duration,
    /// The seed of the random choices.
    pub seed: u64,
}

/// A request and its measured cost.
#[derive(Clone, Debug)]
pub struct RatedRequest {
    /// The genome of the request.
    pub genome: Genome,
    /// The measured cost.
    pub measured: Measurement,
}

/// The most expensive requests of an operation.
#[derive(Clone, Debug)]
pub struct WorstRequests {
    /// The operation.
    pub operation: Operation,
    /// The number of trials.
    pub trials: u32,
    /// The number of trials whose fixtures could not be created, or not in time.
    pub infeasible: u32,
    /// The request with the highest cost per kilobyte transferred.
    pub densest: Option<RatedRequest>,
    /// The request with the highest cost relative to its limit.
    pub costliest: Option<RatedRequest>,
    /// Requests after which the server had died or did not respond.
    pub failures: Vec<String>,
}

/// The outcome of a search.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// The results by operation.
    pub worst: Vec<WorstRequests>,
}

/// A climb: the best requests so far, by two measures.
#[derive(Debug, Default)]
struct Climb {
    densest: Option<RatedRequest>,
    costliest: Option<RatedRequest>,
    tried: u32,
    stale: u32,
}

/// Runs a search with a new store in a directory.
pub async fn run(plan: &Plan, dir: &Path) -> Report {
    let mut worst = Vec::new();
    let mut harness = None;
    for operation in &plan.operations {
        let effort = operation.effort();
        let harness = match &mut harness {
            Some((of, harness)) if *of == effort => harness,
            other => &mut other.insert((effort, Harness::new(dir, plan.time, effort).await)).1,
        };
        let found = search(*operation, plan, harness).await;
        note(&found);
        worst.push(found);
    }
    Report { seed: plan.seed, worst }
}

async fn search(operation: Operation, plan: &Plan, harness: &mut Harness) -> WorstRequests {
    // Each operation has its own random choices, so that `--only` reproduces them.
    let mut random = StdRng::seed_from_u64(plan.seed ^ (operation as u64) << 32);
    let mut worst =
        WorstRequests { operation, trials: 0, infeasible: 0, densest: None, costliest: None, failures: Vec::new() };
    let end = Instant::now() + plan.time;
    let mut climb = Climb::default();
    while Instant::now() < end {
        let genome = climb.next(operation, &mut random);
        worst.trials += 1;
        match harness.measure(&genome).await {
            Outcome::Measurement(measured) => {
                let found = RatedRequest { genome, measured };
                worst.add(&found);
                climb.add(found);
            }
            Outcome::Infeasible => worst.infeasible += 1,
            Outcome::Hung => worst.failures.push(format!("{genome}: no answer")),
            Outcome::Died(log) => {
                let lines: Vec<&str> = log.lines().collect();
                worst.failures.push(format!(
                    "{genome}: the server ended: {}",
                    lines[lines.len().saturating_sub(5)..].join(" / ")
                ));
            }
        }
        if climb.stale > MAX_STALE_TRIALS {
            climb = Climb::default();
        }
    }
    for found in [&mut worst.densest, &mut worst.costliest].into_iter().flatten() {
        for _ in 0..2 {
            if found.measured.exceeds_limit() {
                found.measured = harness.confirm(&found.genome, found.measured).await;
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
        let (Some(densest), Some(costliest)) = (&self.densest, &self.costliest) else {
            return Genome::random(operation, random);
        };
        match random.random_range(0..10) {
            _ if self.tried < RANDOM_TRIALS => Genome::random(operation, random),
            0 => Genome::random(operation, random),
            1 => densest.genome.crossed(&costliest.genome, random).mutated(random),
            2..=4 => densest.genome.mutated(random),
            _ => costliest.genome.mutated(random),
        }
    }

    fn add(&mut self, found: RatedRequest) {
        self.tried += 1;
        self.stale += 1;
        if is_worse(&self.densest, &found, Measurement::density) {
            self.densest = Some(found.clone());
            self.stale = 0;
        }
        if is_worse(&self.costliest, &found, Measurement::excess) {
            self.costliest = Some(found);
            self.stale = 0;
        }
    }
}

impl WorstRequests {
    fn add(&mut self, found: &RatedRequest) {
        if is_worse(&self.densest, found, Measurement::density) {
            self.densest = Some(found.clone());
        }
        if is_worse(&self.costliest, found, Measurement::excess) {
            self.costliest = Some(found.clone());
        }
    }

    /// The cost relative to the limit; infinite if a request breaks the server.
    pub fn excess(&self) -> f64 {
        if !self.failures.is_empty() {
            return f64::INFINITY;
        }
        let found = [&self.densest, &self.costliest];
        found.into_iter().flatten().map(|found| found.measured.excess()).fold(0.0, f64::max)
    }
}

impl Report {
    /// The highest cost relative to its limit; infinite if a request breaks the server.
    pub fn excess(&self) -> f64 {
        self.worst.iter().map(WorstRequests::excess).fold(0.0, f64::max)
    }
}

/// True if a request is worse than the worst so far.
fn is_worse(best: &Option<RatedRequest>, found: &RatedRequest, by: impl Fn(&Measurement) -> f64) -> bool {
    best.as_ref().is_none_or(|best| by(&found.measured) > by(&best.measured))
}

impl fmt::Display for RatedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measurement { status, sent, received, chunk, extra: _, cpu, memory, latency } = self.measured;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let kib = |bytes: u64| bytes as f64 / 1024.0;
        write!(
            f,
            "{:7.3} {:9.1} {:9.3} {:9.1} {:9.1} {:9.1} {:4} {:7.2}",
            cpu.as_secs_f64(),
            mib(memory),
            latency.as_secs_f64(),
            kib(sent),
            kib(received),
            kib(chunk),
            status,
            self.measured.excess(),
        )
    }
}

impl fmt::Display for WorstRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("{} ({})", self.operation, self.trials - self.infeasible);
        let marked = |found: &RatedRequest| if found.measured.exceeds_limit() { "TOO MUCH" } else { "" };
        let same =
            |found: &RatedRequest| self.costliest.as_ref().is_some_and(|costliest| costliest.genome == found.genome);
        let densest = self.densest.iter().filter(|found| !same(found));
        for found in self.costliest.iter().chain(densest) {
            let trial = Trial::of(&found.genome, 0);
            writeln!(f, "{name:22} {found} {}\n    {}\n    {}", marked(found), found.genome, trial.request)?;
            if let Some(last) = trial.before.last() {
                writeln!(f, "    after {} requests, the last of them {last}", trial.before.len())?;
            }
            for array in trial.array.iter().chain(&trial.coordinate) {
                writeln!(f, "    of {} of {} stored chunks of {:?}", array.document, array.stored, array.content)?;
            }
        }
        self.failures.iter().try_for_each(|failures| writeln!(f, "{name:22} BROKEN {failures}"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}; the costliest request of each operation relative to its limit, and per kilobyte",
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

    fn found(cpu: u64, sent: u64) -> RatedRequest {
        let (cpu, latency) = (Duration::from_millis(cpu), Duration::ZERO);
        let measured = Measurement { status: 200, sent, received: 0, chunk: 0, extra: 0, cpu, memory: 0, latency };
        RatedRequest { genome: Genome::plain(Operation::Schema), measured }
    }

    #[test]
    fn climb_retains_the_costliest_and_the_densest() {
        let mut climb = Climb::default();
        for (cpu, sent) in [(100, 16 << 10), (300, 1 << 20), (200, 1 << 20), (90, 16 << 10)] {
            climb.add(found(cpu, sent));
        }
        let cpu = |found: &Option<RatedRequest>| found.as_ref().unwrap().measured.cpu.as_millis();
        assert_eq!((cpu(&climb.costliest), cpu(&climb.densest)), (300, 100));
        assert_eq!((climb.tried, climb.stale), (4, 2));
    }

    #[test]
    fn one_request_over_the_limit_fails_the_report() {
        let mut worst = WorstRequests {
            operation: Operation::Schema,
            trials: 1,
            infeasible: 0,
            densest: None,
            costliest: None,
            failures: Vec::new(),
        };
        worst.add(&found(1900, 1));
        assert!(worst.excess() <= 1.0);
        worst.add(&found(2100, 1));
        assert!(worst.excess() > 1.0 && worst.to_string().contains("TOO MUCH"));
        let failures = WorstRequests { densest: None, costliest: None, failures: vec!["x".to_owned()], ..worst };
        assert!(failures.excess() > 1.0);
    }
}
