//! System errors while a store opens: each call that concerns its files fails once, with each of several errors.
//!
//! A failed start must exit with code 3 and a message that names a path of the store, and must never report damage;
//! afterwards the store opens with all of its data.

use std::{collections::BTreeSet, fs, path::Path};

use crate::{
    server::{Ended, Launch, Server},
    store_files::copy_store,
};

/// The injected errors, by name and number on Linux.
pub const ERRORS: [(&str, i32); 5] = [("EIO", 5), ("EACCES", 13), ("EMFILE", 24), ("ENOSPC", 28), ("EROFS", 30)];

/// The initial state of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialState {
    /// It does not exist.
    Missing,
    /// It was closed cleanly.
    Closed,
    /// Its server was killed.
    Crashed,
}

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The number of injected failures.
    pub failed_calls: u32,
    /// The number of starts that failed with a correct message.
    pub failed_starts: u32,
    /// Violated expectations.
    pub violations: Vec<String>,
}

const KEYS: u32 = 40;

/// Fails one in `one_in` calls of a start, one at a time. `library` is the shim.
pub async fn run(
    index: &str,
    before: InitialState,
    (errors, one_in): (&[(&str, i32)], usize),
    library: &Path,
    tools: &Path,
) -> Report {
    let original = tools.join("original");
    if before != InitialState::Missing {
        create_store(index, &original, before).await;
    }
    let copy = tools.join("copy");
    let launch = Launch::of(format_args!("{index}:{}", copy.display()))
        .env("LD_PRELOAD", library)
        .env("FAILING_CALL_ROOT", &copy)
        .env("FAILING_CALL_LOG", tools.join("calls"));
    copy_store(&original, &copy);
    let failing = |number: u32, error: i32| {
        launch.clone().env("FAILING_CALL_NUMBER", number.to_string()).env("FAILING_CALL_ERRNO", error.to_string())
    };
    failing(0, 0).start().kill();
    let calls = distinct_calls(&fs::read_to_string(tools.join("calls")).expect("the calls are noted"), &copy);
    let mut report = Report::default();
    for (number, call) in calls.into_iter().step_by(one_in) {
        for (name, error) in errors {
            copy_store(&original, &copy);
            let what = format!("{index}, {before:?}, {name} at {number}: {call}");
            report.failed_calls += 1;
            match failing(number, *error).try_start() {
                Ok(server) => server.kill(),
                Err(ended) => {
                    report.failed_starts += 1;
                    if let Some(violation) = check_message(&ended, &copy) {
                        report.violations.push(format!("{what}: {violation}"));
                    }
                }
            }
            match Launch::of(format_args!("{index}:{}", copy.display())).try_start() {
                Ok(server) => {
                    if before != InitialState::Missing && !has_all(&server).await {
                        report.violations.push(format!("{what}: a value is lost"));
                    }
                    server.kill();
                }
                Err(ended) => report.violations.push(format!("{what}: does not open afterwards: {ended:?}")),
            }
        }
    }
    report
}

fn check_message(ended: &Ended, store: &Path) -> Option<String> {
    let message = ended.stderr.lines().last().unwrap_or_default();
    let path = store.to_string_lossy();
    // The message contains the location of the store too; the test requires the file or directory.
    let names_file = message.matches(&*path).count() >= 2;
    let right = ended.code == Some(3) && names_file && !ended.stderr.contains("damaged");
    (!right).then(|| format!("{:?}: {}", ended.code, ended.stderr))
}

async fn create_store(index: &str, dir: &Path, before: InitialState) {
    let server = Launch::of(format_args!("{index}:{}", dir.display())).start();
    for number in 0..KEYS {
        let put = server.put(&format!("/store/kept/{number}"), value(number)).await;
        assert!(put.status().is_success(), "{put:?}");
    }
    if before == InitialState::Closed { server.stop() } else { server.kill() }
}

async fn has_all(server: &Server) -> bool {
    for number in 0..KEYS {
        let answer = server.get(&format!("/store/kept/{number}")).await;
        if !answer.status().is_success() || answer.bytes().await.expect("a body") != value(number) {
            return false;
        }
    }
    true
}

fn value(number: u32) -> Vec<u8> {
    // Some values are stored as files.
    vec![number.to_le_bytes()[0]; if number.is_multiple_of(4) { 5000 } else { 50 }]
}

/// The numbers and descriptions of the distinct calls: most calls open the 256 directories of values.
fn distinct_calls(noted: &str, store: &Path) -> Vec<(u32, String)> {
    let mut known = BTreeSet::new();
    let mut last = String::new();
    let mut calls = Vec::new();
    for line in noted.lines() {
        let (number, call) = line.split_once(' ').expect("a number and a call");
        let call = call.replace(&*store.to_string_lossy(), "");
        let kind = call.split("/values/").next().unwrap_or(&call).to_owned();
        let of_values = kind != call;
        if (of_values && !known.insert(kind)) || call == last {
            continue;
        }
        last.clone_from(&call);
        calls.push((number.parse().expect("a number"), call));
    }
    calls
}
