//! Python clients: processes that read one JSON object per line and answer each with one.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use serde_json::Value;
use zarrd_tests::{benchmark::comparison::Turn, python::Python};

use crate::servers::Peak;

/// A client process.
pub(crate) struct Process {
    name: String,
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Process {
    /// Starts a process, which reports call `name`.
    pub(crate) fn start(python: &Python, name: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/report/python/serve.py");
        let mut child =
            python.command().arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("start Python");
        let asks = child.stdin.take().expect("its input");
        let answers = BufReader::new(child.stdout.take().expect("its output"));
        Self { name: name.to_owned(), child, asks, answers }
    }

    pub(crate) fn request(&mut self, request: &Value) -> Value {
        writeln!(self.asks, "{request}").expect("ask Python");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("Python's answer");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{} answered {line:?} to {request}", self.name))
    }

    /// Sends a message whose reply contains latencies.
    pub(crate) fn turn(&mut self, request: &Value) -> Turn {
        turn(&self.request(request))
    }

    /// The peak memory of the process.
    pub(crate) fn peak(&self) -> Peak {
        Peak::of(&self.name, self.child.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The turn described by a reply.
pub(crate) fn turn(answer: &Value) -> Turn {
    let latencies = answer["latencies"].as_array().expect("latencies");
    let turn = Turn::sequence(latencies.iter().filter_map(Value::as_f64).collect());
    match answer["seconds"].as_f64() {
        Some(seconds) => Turn { seconds, ..turn },
        None => turn,
    }
}
