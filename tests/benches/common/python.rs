//! The peers that run in Python: scripts that read one JSON object per line and answer each with one.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use serde_json::Value;

/// An interpreter with the peers.
pub(crate) struct Python(zarrd_tests::python::Python);

/// A process that does what it is asked to.
pub(crate) struct Peers {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Python {
    pub(crate) fn new() -> Option<Self> {
        zarrd_tests::python::python().map(Self)
    }

    /// Runs the `peers.py` of a benchmark to its end.
    pub(crate) fn run(&self, benchmark: &str, arguments: &[&OsStr]) {
        let done = self.0.command().arg(script(benchmark)).args(arguments).status().expect("start Python");
        assert!(done.success(), "the peers failed");
    }

    /// Starts the `peers.py` of a benchmark, which then waits to be asked.
    pub(crate) fn peers(&self, benchmark: &str, arguments: &[&OsStr]) -> Peers {
        let mut command = self.0.command();
        command.arg(script(benchmark)).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("start Python");
        let asks = child.stdin.take().expect("its input");
        let answers = BufReader::new(child.stdout.take().expect("its output"));
        Peers { child, asks, answers }
    }
}

impl Peers {
    /// What they answer.
    pub(crate) fn ask(&mut self, ask: &Value) -> Value {
        writeln!(self.asks, "{ask}").expect("ask Python");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("Python's answer");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("Python said {line:?}"))
    }

    /// How many seconds something took, as the answer says.
    pub(crate) fn seconds(&mut self, ask: &Value) -> f64 {
        self.ask(ask)["seconds"].as_f64().expect("seconds")
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn script(benchmark: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches").join(benchmark).join("peers.py")
}
