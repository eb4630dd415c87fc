//! A simulation of power loss: acknowledged changes must survive.
//!
//! A writer changes a store on a file system mounted from an image through a loop device. It is stopped at random
//! moments; the image in its state on the simulated drive is copied and mounted elsewhere, and the store in the copy is
//! opened and compared, key by key, with the changes acknowledged to the writer. Periodic write-back is disabled
//! meanwhile, so that the drive contains only data that was synced or written back under memory pressure.
//!
//! Drives that lose or reorder writes in a cache of their own are not simulated.
//!
//! ```text
//! power-loss [--index sled|redb] [--rounds N] [--keys N] [--seconds N] [--dir DIR] [--syncs all|none]
//! ```
//!
//! With `--syncs none` the writer's syncs have no effect, as a control: data must then be lost.
//!
//! Needs root, `mkfs.ext4`, `losetup` and loop mounts. Exits with 0 if nothing was lost, 1 if something was, and 77 if
//! loop mounts are not permitted.

mod audit;
mod image;
mod journal;
mod segments;
mod writer;

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, ExitCode, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use self::journal::Journal;
use zarrd_store_local::IndexKind;
use zarrd_tests::shim::shim;

/// The options of the command line.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    index: IndexKind,
    rounds: u32,
    keys: u32,
    seconds: u64,
    dir: PathBuf,
    /// False if the writer's syncs have no effect.
    syncs: bool,
}

/// The exit code for "skipped".
const SKIPPED: u8 = 77;

pub(crate) fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(2).peekable();
    match arguments.peek().map(String::as_str) {
        Some("write") => writer::run(&plan(arguments.skip(1))),
        Some("audit") => audit::run(&plan(arguments.skip(1))),
        _ => drive(&plan(arguments)),
    }
}

fn plan(mut arguments: impl Iterator<Item = String>) -> Plan {
    let mut plan = Plan {
        index: IndexKind::Sled,
        rounds: 10,
        keys: 100_000,
        seconds: 20,
        dir: std::env::temp_dir().join("zarrd-power-loss"),
        syncs: true,
    };
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_else(|| panic!("{name} takes a value"));
        match name.as_str() {
            "--index" if value == "sled" => plan.index = IndexKind::Sled,
            "--index" if value == "redb" => plan.index = IndexKind::Redb,
            "--rounds" => plan.rounds = value.parse().expect("a number of rounds"),
            "--keys" => plan.keys = value.parse().expect("a number of keys"),
            "--seconds" => plan.seconds = value.parse().expect("seconds of churn between rounds"),
            "--dir" => plan.dir = value.into(),
            "--syncs" => plan.syncs = value == "all",
            _ => panic!("unknown: {name} {value}"),
        }
    }
    plan
}

impl Plan {
    fn command(&self, role: &str, dir: &std::path::Path) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("this program's path"));
        command
            .args(["power-loss", role, "--index", self.index.name(), "--keys", &self.keys.to_string(), "--dir"])
            .arg(dir);
        command
    }
}

fn drive(plan: &Plan) -> ExitCode {
    let Some(drive) = image::Drive::make(&plan.dir, plan.keys) else {
        println!("skipped: loop mounts are not allowed here (root, losetup and mkfs.ext4 are needed)");
        return SKIPPED.into();
    };
    let _write_back_disabled = image::WriteBackDisabled::begin();
    let tools = tempfile::tempdir().expect("a directory");
    let mut writer = plan.command("write", &drive.store());
    if !plan.syncs {
        writer.env("LD_PRELOAD", shim("no_sync", tools.path()).expect("a C compiler"));
    }
    let mut child = writer.stdout(Stdio::piped()).spawn().expect("start the writer");
    let journal = Arc::new(Mutex::new(Journal::default()));
    let (loaded, reader) = follow(&mut child, Arc::clone(&journal));
    loaded.recv().expect("the writer ended while it loaded");
    println!("{} keys loaded, {} index", plan.keys, plan.index);
    let mut segments = segments::Segments::default();
    let (mut lost, mut failed) = (0, 0);
    let begin = Instant::now();
    for round in 1..=plan.rounds {
        // A random fraction, so that the stops do not synchronize with anything.
        let wait = Duration::from_secs(plan.seconds).mul_f64(0.5 + rand::random::<f64>());
        churn(wait, &mut segments, &drive);
        image::stop(&child);
        std::thread::sleep(Duration::from_millis(300));
        let expected = journal.lock().unwrap().clone();
        let copy = drive.copy();
        image::go_on(&child);
        let result = audit::audit(plan, &copy, &expected);
        println!(
            "round {round}: {} acknowledged in all, {} live, {result}; {}",
            expected.acknowledged(),
            expected.live(),
            segments.recycled(),
        );
        lost += result.lost;
        failed += u32::from(result.failed_open.is_some());
    }
    image::kill(&mut child);
    reader.join().expect("the reader of the writer's journal");
    let (recycled, seconds) = (segments.recycled(), begin.elapsed().as_secs());
    println!("{}: {} rounds in {seconds} s, lost: {lost}, failed opens: {failed}; {recycled}", plan.index, plan.rounds);
    let sound = lost == 0 && failed == 0;
    if sound == plan.syncs { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Lets the writer continue for a time, and observes which segments of the index are rewritten.
fn churn(wait: Duration, segments: &mut segments::Segments, drive: &image::Drive) {
    let begin = Instant::now();
    while begin.elapsed() < wait {
        segments.observe(&drive.store());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Reads the writer's journal as it is written; the receiver is notified once the keys are loaded.
fn follow(
    child: &mut Child,
    journal: Arc<Mutex<Journal>>,
) -> (std::sync::mpsc::Receiver<()>, std::thread::JoinHandle<()>) {
    let (sender, loaded) = std::sync::mpsc::channel();
    let lines = BufReader::with_capacity(1 << 20, child.stdout.take().expect("the writer's output"));
    let reader = std::thread::spawn(move || {
        for line in lines.lines() {
            // The writer is killed in the end, possibly in the middle of a line.
            let Ok(line) = line else { return };
            if line == "loaded" {
                sender.send(()).expect("the driver waits");
            } else {
                journal.lock().unwrap().note(&line);
            }
        }
    });
    (loaded, reader)
}
