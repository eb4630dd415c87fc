//! The processes that open states, each with a directory in memory.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use store_local::IndexKind;

use crate::{
    classes::STORE,
    tree::Tree,
    verify::{DONE, Outcome},
};

/// How long a state may take before it counts as refused.
const LONGEST: Duration = Duration::from_secs(20);
/// How many states a process opens before another takes its place, since what panics leaks threads and files.
const STATES: u32 = 400;

/// Opens states, one after another.
pub(crate) struct Opener {
    index: IndexKind,
    keys: PathBuf,
    dir: PathBuf,
    /// How many states were opened.
    number: u64,
    process: Option<Process>,
}

struct Process {
    child: Child,
    input: ChildStdin,
    lines: mpsc::Receiver<String>,
    states: u32,
}

impl Opener {
    /// An opener with the directory `dir`, which is made. `keys` is the file of the keys that are looked up.
    pub(crate) fn new(index: IndexKind, keys: &Path, dir: &Path) -> Self {
        let _ = fs::remove_dir_all(dir);
        fs::create_dir_all(dir.join("0")).expect("make a directory for states");
        Self { index, keys: keys.to_owned(), dir: dir.to_owned(), number: 0, process: None }
    }

    /// Writes a state out and opens it.
    pub(crate) fn open(&mut self, state: &Tree) -> Outcome {
        // Threads that outlive the store of the last state would otherwise go on in this one.
        let before = self.dir.join(self.number.to_string());
        self.number += 1;
        let at = self.dir.join(self.number.to_string());
        fs::rename(before, &at).expect("rename the directory of states");
        state.write(&at);
        let process = self.process.get_or_insert_with(|| Process::start(self.index, &self.keys, &self.dir));
        let answer = process.ask(&at.join(STORE));
        process.states += 1;
        let sound = answer.as_ref().is_ok_and(|outcome| outcome.refused.is_none() && outcome.problems.is_empty());
        if !sound || process.states >= STATES {
            self.process = None;
        }
        answer.unwrap_or_else(|why| {
            let said = fs::read_to_string(self.dir.join("stderr")).unwrap_or_default();
            let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
            Outcome { refused: Some(format!("{why}; it said {last}")), ..Outcome::default() }
        })
    }
}

impl Process {
    fn start(index: IndexKind, keys: &Path, dir: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program's path"));
        command.args(["verify", index.name()]).arg(keys).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(dir.join("stderr")).expect("make a file for what the process says"));
        let mut child = command.spawn().expect("start a process that opens states");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, input, lines, states: 0 }
    }

    fn ask(&mut self, store: &Path) -> Result<Outcome, String> {
        let end = Instant::now() + LONGEST;
        writeln!(self.input, "{}", store.display()).map_err(|error| format!("the process died: {error}"))?;
        let mut outcome = Outcome::default();
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if line == DONE => return Ok(outcome),
                Ok(line) => outcome.take(&line),
                Err(mpsc::RecvTimeoutError::Timeout) => return Err(format!("it hung for {} s", LONGEST.as_secs())),
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait().expect("wait for the process");
                    return Err(format!("the process died: {status}"));
                }
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
