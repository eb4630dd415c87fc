//! Crowds of clients that do not behave: see [`zarrd_tests::crowds`].
//!
//! ```text
//! crowds [--clients N] [--keys N] [--stay SECONDS] [--calm SECONDS] [--kind NAME[/MANNER][,…]] [--binary PATH] [--dir DIR]
//! ```
//!
//! The crowd is a process of the lowest priority. It fails where memory is beyond its bounds, or where somebody else is refused, or waits for longer than 20 ms for a small value or 50 ms for
//! an element or a node, at the 99th percentile.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use zarrd_tests::{
    binary,
    crowds::{Crowd, Plan, Seen, gather, run},
};

/// What somebody else's small GET may take while a crowd is there.
const MOST_WAIT: Duration = Duration::from_millis(20);
/// What an element, or a node elsewhere, may take.
const MOST_WAIT_FOR_NODES: Duration = Duration::from_millis(50);

struct Arguments {
    plan: Plan,
    place: PathBuf,
    /// Where this process is to be a crowd.
    load: Option<(Crowd, SocketAddr)>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { plan, place, load } = arguments();
    if let Some((crowd, address)) = load {
        gather(crowd, plan.clients, address, || false);
        return ExitCode::SUCCESS;
    }
    let dir = tempfile::tempdir_in(place).expect("a temporary directory");
    let within = run(&plan, dir.path()).await.iter().all(is_bearable);
    if within { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn is_bearable(seen: &Seen) -> bool {
    let (p99, stranger) = (0.99, &seen.stranger);
    let waits = [
        (&stranger.gets, MOST_WAIT),
        (&stranger.elements, MOST_WAIT_FOR_NODES),
        (&stranger.nodes, MOST_WAIT_FOR_NODES),
    ];
    let waited = waits.iter().all(|(waited, most)| waited.took.quantile(p99) <= *most);
    seen.is_within_limits() && stranger.refused() == 0 && waited
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
