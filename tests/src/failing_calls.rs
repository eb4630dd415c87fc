//! Errors of the system while a store opens: each call that concerns its files fails once, with each of some errors.
//!
//! A start that cannot go on must end with exit code 3 and a message that names a path of the store, and never call it damaged;
//! afterwards the store opens with all that it had.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use crate::server::{Ended, Launch, Server};

/// The errors that are tried, by name and number, as Linux has them.
pub const ERRORS: [(&str, i32); 5] = [("EIO", 5), ("EACCES", 13), ("EMFILE", 24), ("ENOSPC", 28), ("EROFS", 30)];

/// What the store is like that is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// There is none yet.
    Missing,
    /// It was closed in order.
    Closed,
    /// Its server was killed.
    Crashed,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many calls were made to fail.
    pub failed: u32,
    /// How many starts were refused, and said why.
    pub refused: u32,
    /// What was not as it must be.
    pub wrong: Vec<String>,
}

const KEYS: u32 = 40;

/// Lets calls of a start fail, one after the other. `library` is the shim.
pub async fn run(index: &str, before: Before, errors: &[(&str, i32)], library: &Path, tools: &Path) -> Report {
    let original = tools.join("original");
    if before != Before::Missing {
        make(index, &original, before).await;
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
    let calls = distinct(&fs::read_to_string(tools.join("calls")).expect("the calls are noted"), &copy);
    let mut report = Report::default();
    for (number, call) in calls {
        for (name, error) in errors {
            copy_store(&original, &copy);
            let what = format!("{index}, {before:?}, {name} at {number}: {call}");
            report.failed += 1;
            match failing(number, *error).try_start() {
                Ok(server) => server.kill(),
                Err(ended) => {
                    report.refused += 1;
                    if let Some(wrong) = wrong_message(&ended, &copy) {
                        report.wrong.push(format!("{what}: {wrong}"));
                    }
                }
            }
            match Launch::of(format_args!("{index}:{}", copy.display())).try_start() {
                Ok(server) => {
                    if before != Before::Missing && !has_all(&server).await {
                        report.wrong.push(format!("{what}: a value is lost"));
                    }
                    server.kill();
                }
                Err(ended) => report.wrong.push(format!("{what}: does not open afterwards: {ended:?}")),
            }
        }
    }
    report
}

fn wrong_message(ended: &Ended, store: &Path) -> Option<String> {
    let message = ended.stderr.lines().last().unwrap_or_default();
    let path = store.to_string_lossy();
    // The location of the store is in the message too; what is asked for is the file or directory.
    let names_file = message.matches(&*path).count() >= 2;
    let right = ended.code == Some(3) && names_file && !ended.stderr.contains("damaged");
    (!right).then(|| format!("{:?}: {}", ended.code, ended.stderr))
}

async fn make(index: &str, dir: &Path, before: Before) {
    let server = Launch::of(format_args!("{index}:{}", dir.display())).start();
    for number in 0..KEYS {
        let put = server.put(&format!("/store/kept/{number}"), value(number)).await;
        assert!(put.status().is_success(), "{put:?}");
    }
    if before == Before::Closed { server.stop() } else { server.kill() }
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
    // Some are files.
    vec![number.to_le_bytes()[0]; if number.is_multiple_of(4) { 5000 } else { 50 }]
}

fn copy_store(from: &Path, to: &Path) {
    if to.exists() {
        fs::remove_dir_all(to).expect("remove the copy");
    }
    if from.exists() {
        let copied = Command::new("cp").arg("-a").args([from, to]).status();
        assert!(copied.expect("cp runs").success());
    }
}

/// The numbers of the calls that are not like one before, with what they are: most open the 256 directories of values.
fn distinct(noted: &str, store: &Path) -> Vec<(u32, String)> {
    let mut seen = BTreeSet::new();
    let mut last = String::new();
    let mut calls = Vec::new();
    for line in noted.lines() {
        let (number, call) = line.split_once(' ').expect("a number and a call");
        let call = call.replace(&*store.to_string_lossy(), "");
        let kind = call.split("/values/").next().unwrap_or(&call).to_owned();
        let of_values = kind != call;
        if (of_values && !seen.insert(kind)) || call == last {
            continue;
        }
        last.clone_from(&call);
        calls.push((number.parse().expect("a number"), call));
    }
    calls
}
