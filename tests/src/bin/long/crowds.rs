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

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use zarrd_tests::{
    arguments::arguments,
    binary,
    crowds::{Crowd, Observation, Plan, run, run_crowd},
};

/// The maximum latency of another client's small GET during a crowd.
const MAX_LATENCY: Duration = Duration::from_millis(20);
/// The maximum latency of an element, or of a node elsewhere.
const MAX_NODE_LATENCY: Duration = Duration::from_millis(50);

struct Options {
    plan: Plan,
    directory: PathBuf,
    /// Set if this process is to act as the crowd.
    load: Option<(Crowd, SocketAddr)>,
}

#[tokio::main]
pub(crate) async fn main() -> ExitCode {
    let Options { plan, directory, load } = options();
    if let Some((crowd, address)) = load {
        run_crowd(crowd, plan.clients, address, || false);
        return ExitCode::SUCCESS;
    }
    let dir = tempfile::tempdir_in(directory).expect("a temporary directory");
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

fn options() -> Options {
    let mut plan = Plan {
        clients: 400,
        keys: 10_000,
        stay: Duration::from_secs(30),
        calm: Duration::from_secs(60),
        crowds: Crowd::all(),
        program: Some(std::env::current_exe().expect("an executable has a path")),
    };
    let (mut directory, mut crowd, mut address) = (std::env::temp_dir(), None, None);
    for argument in arguments() {
        match argument.name.as_str() {
            "--clients" => plan.clients = argument.number(),
            "--keys" => plan.keys = argument.number(),
            "--stay" => plan.stay = Duration::from_secs(argument.number()),
            "--calm" => plan.calm = Duration::from_secs(argument.number()),
            "--kind" => plan.crowds = argument.list(),
            "--binary" => binary::use_program(argument.value.into()),
            "--dir" => directory = argument.value.into(),
            "--load" => crowd = argument.list().pop(),
            "--at" => address = argument.list().pop(),
            _ => argument.reject(),
        }
    }
    Options { plan, directory, load: crowd.zip(address) }
}
