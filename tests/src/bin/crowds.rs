//! Crowds of clients that do not behave: see [`zarrd_tests::crowds`].
//!
//! ```text
//! crowds [--clients N] [--keys N] [--stay SECONDS] [--calm SECONDS] [--kind NAME[,NAME…]] [--dir DIR]
//! ```

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::{path::PathBuf, process::ExitCode, time::Duration};

use zarrd_tests::crowds::{Kind, Plan, run};

/// What somebody else's small GET may take while a crowd is there.
const MOST_WAIT: Duration = Duration::from_millis(20);

#[tokio::main]
async fn main() -> ExitCode {
    let (plan, place) = arguments();
    let dir = tempfile::tempdir_in(place).expect("a temporary directory");
    let mut code = ExitCode::SUCCESS;
    for seen in run(&plan, dir.path()).await {
        if !seen.is_within_limits() || seen.refused > 0 || seen.gets.quantile(0.99) > MOST_WAIT {
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn arguments() -> (Plan, PathBuf) {
    let mut plan = Plan {
        clients: 400,
        keys: 10_000,
        stay: Duration::from_secs(30),
        calm: Duration::from_secs(60),
        kinds: Kind::ALL.to_vec(),
    };
    let mut place = std::env::temp_dir();
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_else(|| panic!("{name} takes a value"));
        let number = || value.parse().unwrap_or_else(|_| panic!("{name} takes a number"));
        let seconds = || Duration::from_secs(value.parse().unwrap_or_else(|_| panic!("{name} takes a number")));
        match name.as_str() {
            "--clients" => plan.clients = number(),
            "--keys" => plan.keys = number(),
            "--stay" => plan.stay = seconds(),
            "--calm" => plan.calm = seconds(),
            "--kind" => plan.kinds = value.split(',').map(kind).collect(),
            "--dir" => place = value.into(),
            _ => panic!("unknown: {name}"),
        }
    }
    (plan, place)
}

fn kind(name: &str) -> Kind {
    let named = |kind: &Kind| format!("{kind:?}").eq_ignore_ascii_case(name);
    Kind::ALL.into_iter().find(named).unwrap_or_else(|| panic!("{name} is none of {:?}", Kind::ALL))
}
