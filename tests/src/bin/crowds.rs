//! Crowds of misbehaving clients: see [`zarrd_tests::crowds`].
//!
//! ```text
//! crowds [--clients N] [--keys N] [--stay SECONDS] [--calm SECONDS] [--kind NAME[/BEHAVIOR][,…]] [--binary PATH]
//!        [--dir DIR]
//! ```
//!
//! The crowd is a process with the lowest priority. The command fails if the server exceeds its memory limits, or if
//! another client is rejected or waits longer than 20 ms for a small value, or 50 ms for an element or a node, at the
//! 99th percentile.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use zarrd_tests::{
    binary,
    crowds::{Crowd, Observation, Plan, run, run_crowd},
};

/// The maximum latency of another client's small GET during a crowd.
const MAX_LATENCY: Duration = Duration::from_millis(20);
/// The maximum latency of an element, or of a node elsewhere.
const MAX_NODE_LATENCY: Duration = Duration::from_millis(50);

struct Arguments {
    plan: Plan,
    place: PathBuf,
    /// Set if this process is to act as the crowd.
    load: Option<(Crowd, SocketAddr)>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { plan, place, load } = arguments();
    if let Some((crowd, address)) = load {
        run_crowd(crowd, plan.clients, address, || false);
        return ExitCode::SUCCESS;
    }
    let dir = tempfile::tempdir_in(place).expect("a temporary directory");
    let within = run(&plan, dir.path()).await.iter().all(is_within_latency_limits);
    if within { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn is_within_latency_limits(observation: &Observation) -> bool {
    let (p99, bystander) = (0.99, &observation.bystander);
    let waits =
        [(&bystander.gets, MAX_LATENCY), (&bystander.elements, MAX_NODE_LATENCY), (&bystander.nodes, MAX_NODE_LATENCY)];
    let waited = waits.iter().all(|(waited, most)| waited.latencies.quantile(p99) <= *most);
    observation.is_within_limits() && bystander.failed() == 0 && waited
}

fn arguments() -> Arguments {
    let mut plan = Plan {
        clients: 400,
        keys: 10_000,
        stay: Duration::from_secs(30),
        calm: Duration::from_secs(60),
        crowds: Crowd::all(),
        program: Some(std::env::current_exe().expect("an executable has a path")),
    };
    let (mut place, mut crowd, mut address) = (std::env::temp_dir(), None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_else(|| panic!("{name} takes a value"));
        let number = || value.parse().unwrap_or_else(|_| panic!("{name} takes a number"));
        let seconds = || Duration::from_secs(value.parse().unwrap_or_else(|_| panic!("{name} takes a number")));
        let parsed = |value: &str| value.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
        match name.as_str() {
            "--clients" => plan.clients = number(),
            "--keys" => plan.keys = number(),
            "--stay" => plan.stay = seconds(),
            "--calm" => plan.calm = seconds(),
            "--kind" => plan.crowds = value.split(',').map(parsed).collect(),
            "--binary" => binary::use_program(value.into()),
            "--dir" => place = value.into(),
            "--load" => crowd = Some(parsed(&value)),
            "--at" => address = Some(value.parse().expect("--at takes an address")),
            _ => panic!("unknown: {name}"),
        }
    }
    Arguments { plan, place, load: crowd.zip(address) }
}
