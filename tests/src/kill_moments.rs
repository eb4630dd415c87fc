//! Signals at random moments of opening, recovering and closing: whatever they interrupt, the store opens with all that it
//! acknowledged.
//!
//! Each round takes the store as the last one left it, sometimes after a load that ends with a stop in order or with `kill -9`. Then a
//! command is started one to three times and sent a signal after a random delay, spread over the time that it takes; a
//! server may get to listen, and is stopped with one signal and interrupted with another. In the end the store is opened and
//! compared with what was acknowledged.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use rustix::process::{Pid, Signal, kill_process};
use store::{Key, ReadableStore};

use crate::{
    kill_loop::Writers,
    server::{Launch, Server, program},
};

/// What is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// `zarrd serve`, while it opens the store or closes it.
    Serve,
    /// `zarrd ls`.
    Ls,
    /// `zarrd import`.
    Import,
    /// `zarrd copy`, from the store to another.
    Copy,
}

/// All commands that can be interrupted.
pub const ALL: [Interrupted; 4] = [Interrupted::Serve, Interrupted::Ls, Interrupted::Import, Interrupted::Copy];

/// How the rounds are run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The kind of index, `sled` or `redb`.
    pub index: String,
    /// How many rounds there are.
    pub rounds: u32,
    /// What is interrupted, one of them in each round.
    pub commands: Vec<Interrupted>,
    /// What the random choices are made from.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The sets and erases that were acknowledged.
    pub acknowledged: u64,
    /// The keys that were read back.
    pub checked: u64,
    /// The signals that came before the command had ended by itself.
    pub interrupted: u32,
    /// The commands that had ended before their signal came.
    pub too_late: u32,
    /// The starts that were refused, with what they said.
    pub refusals: Vec<String>,
}

/// What the rounds work with.
struct Moments {
    store: String,
    tools: PathBuf,
    random: StdRng,
    writers: Writers,
    signals: Vec<Signal>,
    /// How long a command takes when nothing interrupts it.
    usual: Duration,
    report: Report,
}

const IMPORTED: u32 = 20;

/// Runs the rounds on a new store. `dir` is empty.
///
/// # Panics
///
/// Where something was lost.
pub async fn run(plan: &Plan, dir: &Path) -> Report {
    let mut random = StdRng::seed_from_u64(plan.seed);
    let writers = Writers::new(4, 24, &mut random);
    let (store, tools) = (format!("{}:{}", plan.index, dir.join("store").display()), dir.join("tools"));
    fs::create_dir_all(tools.join("import")).expect("make a directory");
    for number in 0..IMPORTED {
        fs::write(tools.join(format!("import/{number}")), imported(number)).expect("write a file");
    }
    let usual = Duration::from_millis(200);
    let signals = signals();
    let mut moments = Moments { store, tools, random, writers, signals, usual, report: Report::default() };
    for round in 1..=plan.rounds {
        let command = plan.commands[moments.random.random_range(0..plan.commands.len())];
        moments.round(round, command).await;
    }
    moments.report.acknowledged = moments.writers.acknowledged();
    moments.report
}

impl Moments {
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
        if self.random.random_bool(0.5) { server.kill() } else { server.stop() }
    }

    fn start(&mut self) -> Option<Server> {
        let begun = Instant::now();
        match Launch::of(&self.store).try_start() {
            Ok(server) => {
                self.usual = (self.usual + begun.elapsed()) / 2;
                Some(server)
            }
            Err(ended) => {
                self.report.refusals.push(format!("{ended:?}"));
                None
            }
        }
    }

    async fn load(&mut self) {
        let Some(server) = self.start() else { return };
        let writing = self.writers.write(&server.store());
        tokio::time::sleep(Duration::from_millis(self.random.random_range(0..400))).await;
        // A server that stops in order refuses what it does not take any more, so only a sudden end comes under load.
        server.kill();
        self.writers.settle(writing).await;
        if self.random.random_bool(0.3)
            && let Some(server) = self.start()
        {
            server.stop();
        }
    }

    /// Interrupts a server while it opens the store, or while it closes it.
    fn interrupt_server(&mut self) {
        if self.random.random_bool(0.5) {
            let mut child = Launch::of(&self.store).spawn_child();
            let signal = self.wait_and_signal(&mut child);
            if signal == Some(Signal::HUP) {
                // A server that already takes signals goes on after this one.
                thread::sleep(self.usual.mul_f64(self.random.random_range(0.0..0.5)));
                send(&mut child, Signal::TERM);
            }
            return self.end(child, signal);
        }
        let Some(server) = self.start() else { return };
        if self.random.random_bool(0.3) {
            // The check after a crash, and what was replayed, are under way.
            thread::sleep(Duration::from_millis(self.random.random_range(0..300)));
        }
        server.terminate();
        let signal = self.signals[self.random.random_range(0..self.signals.len())];
        thread::sleep(self.usual.mul_f64(self.random.random_range(0.0..0.5)));
        server.signal(signal);
        let ended = server.wait();
        // A server that has closed its store ends with 0, unless the second signal came before.
        self.count(ended.code != Some(0));
    }

    fn interrupt_command(&mut self, which: Interrupted) {
        let mut command = program();
        let target = self.tools.join("copy");
        match which {
            Interrupted::Serve | Interrupted::Ls => command.args(["ls", "--store", &self.store]),
            Interrupted::Import => {
                command.arg("import").args(["--store", &self.store]).arg(self.tools.join("import")).arg("imported")
            }
            Interrupted::Copy => {
                if target.exists() {
                    fs::remove_dir_all(&target).expect("remove the copy");
                }
                command.arg("copy").arg(&self.store).arg(format!("redb:{}", target.display()))
            }
        };
        let begun = Instant::now();
        let child = spawn(&mut command);
        self.interrupt(child);
        self.usual = self.usual.max(begun.elapsed().mul_f64(0.9)).min(Duration::from_secs(2));
    }

    fn interrupt(&mut self, mut child: Child) {
        let signal = self.wait_and_signal(&mut child);
        self.end(child, signal);
    }

    /// Sends a signal after a random time. `None` if the process had ended by then.
    fn wait_and_signal(&mut self, child: &mut Child) -> Option<Signal> {
        let signal = self.signals[self.random.random_range(0..self.signals.len())];
        thread::sleep(self.usual.mul_f64(self.random.random_range(0.0..1.2)));
        send(child, signal).then_some(signal)
    }

    fn end(&mut self, mut child: Child, signal: Option<Signal>) {
        wait(&mut child);
        self.count(signal.is_some());
    }

    fn count(&mut self, interrupted: bool) {
        if interrupted { self.report.interrupted += 1 } else { self.report.too_late += 1 }
    }
}

/// The signals that are sent: but for those that this process ignores, which its children ignore too, as those of a shell's background
/// jobs do.
fn signals() -> Vec<Signal> {
    let status = fs::read_to_string("/proc/self/status").expect("Linux says what is ignored");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("Linux says what is ignored");
    let ignored = u64::from_str_radix(ignored.trim(), 16).expect("a hexadecimal number");
    let taken = |signal: &Signal| ignored & (1 << (signal.as_raw() - 1)) == 0;
    [Signal::KILL, Signal::TERM, Signal::INT, Signal::HUP].into_iter().filter(taken).collect()
}

fn spawn(command: &mut Command) -> Child {
    use std::process::Stdio;
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("zarrd starts")
}

/// Sends a signal to a process. `false` if it has already ended.
fn send(child: &mut Child, signal: Signal) -> bool {
    if child.try_wait().expect("the process can be asked for").is_some() {
        return false;
    }
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, signal).expect("the signal is sent");
    true
}

fn wait(child: &mut Child) {
    let begun = Instant::now();
    while child.try_wait().expect("the process can be asked for").is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            let _ = child.kill();
            panic!("zarrd does not end after a signal");
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn imported(number: u32) -> Vec<u8> {
    vec![number.to_le_bytes()[0]; if number.is_multiple_of(2) { 100 } else { 10_000 }]
}

/// What was imported is there whole, or not at all.
async fn check_imported(server: &Server) {
    let store = server.store();
    for number in 0..IMPORTED {
        let key = Key::parse(&format!("imported/{number}")).expect("a key");
        if let Some(value) = store.get(&key, None).await.expect("it can be read") {
            assert_eq!(value.bytes().await.expect("it can be read"), imported(number), "{key}");
        }
    }
}
