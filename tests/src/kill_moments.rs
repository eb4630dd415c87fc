//! Signals at random moments of opening, recovering and closing: the store must always open again with everything that
//! it acknowledged.
//!
//! Each round continues with the store of the previous round, sometimes after writes that end with a clean stop or with
//! `kill -9`. Then a command is started one to three times and sent a signal after a random delay within its duration,
//! which is learned from those that ended before their signal; a server may start to listen, and is stopped with one
//! signal and interrupted with another. Finally the store is opened and compared with the acknowledged changes.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use rustix::process::{Pid, Signal, kill_process};
use zarrd_store::{Key, ReadableStore};

use crate::{
    kill_loop::Writers,
    server::{Launch, Server, program},
};

/// The interrupted command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interrupted {
    /// `zarrd serve`, while it opens or closes the store.
    Serve,
    /// `zarrd ls`.
    Ls,
    /// `zarrd import`.
    Import,
    /// `zarrd copy`, from this store to another.
    Copy,
}

/// All commands that can be interrupted.
pub const ALL: [Interrupted; 4] = [Interrupted::Serve, Interrupted::Ls, Interrupted::Import, Interrupted::Copy];

/// The configuration of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The kind of index, `sled` or `redb`.
    pub index: String,
    /// The number of rounds; five times as many if less than `least` happens in them.
    pub rounds: u32,
    /// The least number of interrupted commands and acknowledged changes that show something.
    pub least: (u32, u64),
    /// The commands to interrupt, one per round.
    pub commands: Vec<Interrupted>,
    /// The seed of the random choices.
    pub seed: u64,
}

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The number of acknowledged sets and erases.
    pub acknowledged: u64,
    /// The number of keys that were read back.
    pub checked: u64,
    /// The number of signals that arrived before the command ended.
    pub interrupted: u32,
    /// The number of commands that ended before their signal.
    pub too_late: u32,
    /// The messages of starts that failed.
    pub refusals: Vec<String>,
}

/// The state of a run.
struct Run {
    store: String,
    tools: PathBuf,
    random: StdRng,
    writers: Writers,
    signals: Vec<Signal>,
    /// The durations of uninterrupted commands; of a server, until it listens.
    durations: HashMap<Interrupted, Duration>,
    /// The duration of closing the store of a server.
    closing: Duration,
    report: Report,
}

const IMPORTED: u32 = 20;

/// The duration of what was not measured yet.
const UNKNOWN_DURATION: Duration = Duration::from_millis(100);

/// Runs the rounds on a new store. `dir` is empty.
///
/// # Panics
///
/// If data is lost.
pub async fn run(plan: &Plan, dir: &Path) -> Report {
    let mut random = StdRng::seed_from_u64(plan.seed);
    let writers = Writers::new(4, 24, &mut random);
    let (store, tools) = (format!("{}:{}", plan.index, dir.join("store").display()), dir.join("tools"));
    fs::create_dir_all(tools.join("import")).expect("make a directory");
    for number in 0..IMPORTED {
        fs::write(tools.join(format!("import/{number}")), imported(number)).expect("write a file");
    }
    let (durations, closing) = (HashMap::new(), UNKNOWN_DURATION);
    let signals = signals();
    let mut moments = Run { store, tools, random, writers, signals, durations, closing, report: Report::default() };
    for round in 1..=plan.rounds.saturating_mul(5) {
        if round > plan.rounds && moments.has_shown(plan.least) {
            break;
        }
        let command = plan.commands[moments.random.random_range(0..plan.commands.len())];
        moments.round(round, command).await;
    }
    moments.report.acknowledged = moments.writers.acknowledged();
    moments.report
}

impl Run {
    /// True if so many commands were interrupted, and so many changes acknowledged.
    fn has_shown(&self, (interrupted, acknowledged): (u32, u64)) -> bool {
        self.report.interrupted >= interrupted && self.writers.acknowledged() >= acknowledged
    }

    async fn round(&mut self, round: u32, command: Interrupted) {
        if self.random.random_bool(0.6) {
            self.load().await;
        }
        for _ in 0..self.random.random_range(1..=3) {
            match command {
                Interrupted::Serve => self.interrupt_server(),
                Interrupted::Ls | Interrupted::Import | Interrupted::Copy => self.interrupt_command(command),
            }
        }
        let Some(server) = self.start() else { return };
        self.report.checked += self.writers.check_all(&server.store(), round).await;
        check_imported(&server).await;
        if self.random.random_bool(0.5) { server.kill() } else { self.stop(server) }
    }

    fn start(&mut self) -> Option<Server> {
        let started = Instant::now();
        match Launch::of(&self.store).try_start() {
            Ok(server) => {
                self.durations.insert(Interrupted::Serve, started.elapsed());
                Some(server)
            }
            Err(ended) => {
                self.report.refusals.push(format!("{ended:?}"));
                None
            }
        }
    }

    fn stop(&mut self, server: Server) {
        let started = Instant::now();
        server.stop();
        self.closing = started.elapsed();
    }

    async fn load(&mut self) {
        let Some(server) = self.start() else { return };
        let running = self.writers.write(&server.store());
        tokio::time::sleep(Duration::from_millis(self.random.random_range(0..400))).await;
        // A stopping server rejects new requests cleanly, so only a kill interrupts writes.
        server.kill();
        self.writers.settle(running).await;
        if self.random.random_bool(0.3)
            && let Some(server) = self.start()
        {
            self.stop(server);
        }
    }

    /// Interrupts a server while it opens or closes the store.
    fn interrupt_server(&mut self) {
        if self.random.random_bool(0.5) {
            let mut child = Launch::of(&self.store).spawn_child();
            let signal = self.wait_and_signal(&mut child, Interrupted::Serve);
            if signal == Some(Signal::HUP) {
                // A server that already handles signals continues after this one.
                let delay = self.random.random_range(0.0..0.5);
                thread::sleep(self.duration(Interrupted::Serve).mul_f64(delay));
                send(&mut child, Signal::TERM);
            }
            return self.end(child, signal);
        }
        let Some(server) = self.start() else { return };
        if self.random.random_bool(0.3) {
            // The consistency check after a crash and the replay are in progress.
            thread::sleep(Duration::from_millis(self.random.random_range(0..300)));
        }
        server.terminate();
        let signal = self.signals[self.random.random_range(0..self.signals.len())];
        thread::sleep(self.closing.mul_f64(self.random.random_range(0.0..1.0)));
        server.signal(signal);
        let ended = server.wait();
        // A server that has closed its store exits with 0, unless the second signal came first.
        self.count(ended.code != Some(0));
    }

    fn interrupt_command(&mut self, which: Interrupted) {
        let mut command = program();
        let target = self.tools.join("copy");
        match which {
            Interrupted::Serve | Interrupted::Ls => command.args(["ls", "--store", &self.store]),
            Interrupted::Import => command
                .arg("import")
                .args(["--store", &self.store])
                .arg(self.tools.join("import"))
                .args(["imported", "--merge"]),
            Interrupted::Copy => {
                if target.exists() {
                    fs::remove_dir_all(&target).expect("remove the copy");
                }
                command.arg("copy").arg(&self.store).arg(format!("redb:{}", target.display()))
            }
        };
        let mut child = spawn(&mut command);
        let signal = self.wait_and_signal(&mut child, which);
        self.end(child, signal);
    }

    /// Sends a signal after a random delay; `None` if the process had ended by then.
    ///
    /// A command that ended shows how long it takes, one that did not takes at least the delay.
    fn wait_and_signal(&mut self, child: &mut Child, which: Interrupted) -> Option<Signal> {
        let signal = self.signals[self.random.random_range(0..self.signals.len())];
        let duration = self.duration(which);
        let delay = duration.mul_f64(self.random.random_range(0.0..1.2));
        let started = Instant::now();
        while started.elapsed() < delay {
            if child.try_wait().expect("the process can be asked for").is_some() {
                self.durations.insert(which, started.elapsed());
                return None;
            }
            thread::sleep(Duration::from_millis(1));
        }
        self.durations.insert(which, duration.max(delay).min(Duration::from_secs(2)));
        send(child, signal).then_some(signal)
    }

    fn duration(&self, which: Interrupted) -> Duration {
        self.durations.get(&which).copied().unwrap_or(UNKNOWN_DURATION)
    }

    fn end(&mut self, mut child: Child, signal: Option<Signal>) {
        wait(&mut child);
        self.count(signal.is_some());
    }

    fn count(&mut self, interrupted: bool) {
        if interrupted { self.report.interrupted += 1 } else { self.report.too_late += 1 }
    }
}

/// The signals to send: all except those that this process ignores, since child processes inherit that, as background
/// jobs of a shell do.
fn signals() -> Vec<Signal> {
    let status = fs::read_to_string("/proc/self/status").expect("Linux reports the ignored signals");
    let ignored =
        status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("Linux reports the ignored signals");
    let ignored = u64::from_str_radix(ignored.trim(), 16).expect("a hexadecimal number");
    let is_handled = |signal: &Signal| ignored & (1 << (signal.as_raw() - 1)) == 0;
    [Signal::KILL, Signal::TERM, Signal::INT, Signal::HUP].into_iter().filter(is_handled).collect()
}

fn spawn(command: &mut Command) -> Child {
    use std::process::Stdio;
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("zarrd starts")
}

/// Sends a signal to a process; `false` if it has already ended.
fn send(child: &mut Child, signal: Signal) -> bool {
    if child.try_wait().expect("the process can be asked for").is_some() {
        return false;
    }
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, signal).expect("the signal is sent");
    true
}

fn wait(child: &mut Child) {
    let started = Instant::now();
    while child.try_wait().expect("the process can be asked for").is_none() {
        if started.elapsed() > Duration::from_secs(60) {
            let _ = child.kill();
            panic!("zarrd does not end after a signal");
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn imported(number: u32) -> Vec<u8> {
    vec![number.to_le_bytes()[0]; if number.is_multiple_of(2) { 100 } else { 10_000 }]
}

/// Checks that an import was applied completely or not at all.
async fn check_imported(server: &Server) {
    let store = server.store();
    for number in 0..IMPORTED {
        let key = Key::parse(&format!("imported/{number}")).expect("a key");
        if let Some(value) = store.get(&key, None).await.expect("it can be read") {
            assert_eq!(value.bytes().await.expect("it can be read"), imported(number), "{key}");
        }
    }
}
