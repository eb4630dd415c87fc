//! Worker processes that open states, each in a directory in memory.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use zarrd_store_local::IndexKind;

use crate::crash_states::{
    classes::STORE,
    tree::Tree,
    verify::{DONE, Outcome},
};

/// The timeout for opening a state, after which it counts as failed.
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);
/// The number of states that a process opens before it is replaced, since panics leak threads and files.
const STATES_PER_PROCESS: u32 = 400;

/// Opens states one after another.
pub(crate) struct Opener {
    index: IndexKind,
    keys: PathBuf,
    dir: PathBuf,
    /// The number of opened states.
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
    /// An opener that creates the directory `dir`. `keys` is the file of keys to look up.
    pub(crate) fn new(index: IndexKind, keys: &Path, dir: &Path) -> Self {
        let _ = fs::remove_dir_all(dir);
        fs::create_dir_all(dir.join("0")).expect("make a directory for states");
        Self { index, keys: keys.to_owned(), dir: dir.to_owned(), number: 0, process: None }
    }

    /// Writes a state to disk and opens it.
    pub(crate) fn open(&mut self, state: &Tree) -> Outcome {
        // Threads that outlive the store of the previous state would otherwise write to this one.
        let before = self.dir.join(self.number.to_string());
        self.number += 1;
        let at = self.dir.join(self.number.to_string());
        fs::rename(before, &at).expect("rename the directory of states");
        state.write(&at);
        let process = self.process.get_or_insert_with(|| Process::start(self.index, &self.keys, &self.dir));
        let answer = process.inspect(&at.join(STORE));
        process.states += 1;
        let sound = answer.as_ref().is_ok_and(|outcome| outcome.open_error.is_none() && outcome.problems.is_empty());
        if !sound || process.states >= STATES_PER_PROCESS {
            self.process = None;
        }
        answer.unwrap_or_else(|why| {
            let reply = fs::read_to_string(self.dir.join("stderr")).unwrap_or_default();
            let last = reply.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
            Outcome { open_error: Some(format!("{why}; its last output: {last}")), ..Outcome::default() }
        })
    }
}

impl Process {
    fn start(index: IndexKind, keys: &Path, dir: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program's path"));
        command.args(["crash-states", "verify", index.name()]).arg(keys).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(dir.join("stderr")).expect("create a file for the process's output"));
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

    fn inspect(&mut self, store: &Path) -> Result<Outcome, String> {
        let end = Instant::now() + OPEN_TIMEOUT;
        writeln!(self.input, "{}", store.display()).map_err(|error| format!("the process died: {error}"))?;
        let mut outcome = Outcome::default();
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if line == DONE => return Ok(outcome),
                Ok(line) => outcome.parse_line(&line),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    return Err(format!("it hung for {} s", OPEN_TIMEOUT.as_secs()));
                }
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
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
