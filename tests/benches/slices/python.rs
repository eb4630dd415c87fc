//! The peers that run in Python.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use serde_json::{Value, json};

/// An interpreter with the peers.
pub(crate) struct Python(zarrd_tests::python::Python);

/// A process that reads when it is asked to.
pub(crate) struct Reader {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// Whether the array is opened as part of the read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Open {
    Before,
    First,
}

impl Python {
    pub(crate) fn new() -> Option<Self> {
        zarrd_tests::python::python().map(Self)
    }

    /// Writes the arrays.
    pub(crate) fn write(&self, files: &Path) {
        let mut command = self.0.command();
        let done = command.arg(script()).arg("write").arg(files).status().expect("start Python");
        assert!(done.success(), "the arrays were not written");
    }

    pub(crate) fn reader(&self) -> Reader {
        let mut command = self.0.command();
        command.arg(script()).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("start Python");
        let asks = child.stdin.take().expect("its input");
        let answers = BufReader::new(child.stdout.take().expect("its output"));
        Reader { child, asks, answers }
    }
}

impl Reader {
    /// Reads with a peer; gives the bytes and the seconds.
    pub(crate) fn read(&mut self, peer: &str, place: &str, select: &Value, open: Open) -> (usize, f64) {
        let ask = json!({"peer": peer, "where": place, "select": select, "fresh": open == Open::First});
        writeln!(self.asks, "{ask}").expect("ask Python");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("Python's answer");
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("Python said {line:?}"));
        (answer["bytes"].as_u64().expect("bytes") as usize, answer["seconds"].as_f64().expect("seconds"))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn script() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/benches/slices/peers.py")
}
