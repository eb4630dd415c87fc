//! What people and scripts see: notes on stderr, results on stdout, and how far a long command has come: a bar on a
//! terminal, a line every few seconds elsewhere.

use std::{
    fmt::Display,
    io::{BufWriter, IsTerminal, Stdout, Write},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use indicatif::{BinaryBytes, HumanCount, ProgressBar, ProgressStyle};
use serde::Serialize;
use tokio::{task::JoinHandle, time};

use crate::exit::Failure;

const BAR_EVERY: Duration = Duration::from_millis(100);
const LINE_EVERY: Duration = Duration::from_secs(5);

/// How much of a command is done.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Values that were found.
    pub(crate) expected_keys: AtomicU64,
    /// Their bytes.
    pub(crate) expected_bytes: AtomicU64,
    /// Values that are done.
    pub(crate) keys: AtomicU64,
    /// Bytes that went through, those of values under way included.
    pub(crate) bytes: AtomicU64,
    /// Names that cannot be moved.
    pub(crate) skipped: AtomicU64,
    /// Values that were gone when their turn came.
    pub(crate) vanished: AtomicU64,
    /// Values that failed.
    pub(crate) failed: AtomicU64,
    /// Values that are damaged.
    pub(crate) corrupt: AtomicU64,
}

/// Shows how far a command has come, until it is dropped.
pub(crate) struct Progress {
    command: &'static str,
    tally: Arc<Tally>,
    display: Shown,
    /// When the values began to move; until then it is only known what was found.
    moving: Arc<OnceLock<Instant>>,
    begun: Instant,
    ticker: JoinHandle<()>,
}

/// Many lines on stdout. Whoever does not listen any more ends the command.
pub(crate) struct Output(BufWriter<Stdout>);

/// Where it is shown.
#[derive(Clone)]
enum Shown {
    Bar(ProgressBar),
    Lines,
}

/// The line of JSON that a command ends with.
#[derive(Serialize)]
struct Summary {
    command: &'static str,
    ok: bool,
    keys: u64,
    bytes: u64,
    skipped: u64,
    vanished: u64,
    failed: u64,
    corrupt: u64,
    seconds: f64,
}

/// Writes a result to stdout.
pub(crate) fn print(line: impl Display) {
    // Whoever does not listen any more needs no answer.
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// Writes a note to stderr.
pub(crate) fn note(line: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "zarrd: {line}");
}

impl Output {
    /// Writes a line.
    pub(crate) fn line(&mut self, line: impl Display) -> Result<(), Failure> {
        writeln!(self.0, "{line}").map_err(Failure::Output)
    }

    /// Writes a line of JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.0, value).map_err(|error| Failure::Output(error.into()))?;
        self.line("")
    }

    /// Ends.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.0.flush().map_err(Failure::Output)
    }
}

impl Default for Output {
    fn default() -> Self {
        Self(BufWriter::new(std::io::stdout()))
    }
}

impl Tally {
    /// Counts a value that is to be moved.
    pub(crate) fn expect(&self, size: u64) {
        self.expected_keys.fetch_add(1, Relaxed);
        self.expected_bytes.fetch_add(size, Relaxed);
    }
}

impl Progress {
    /// Begins to show the progress of a command. Must be called within the runtime.
    pub(crate) fn begin(command: &'static str) -> Self {
        let (tally, moving) = (Arc::<Tally>::default(), Arc::<OnceLock<Instant>>::default());
        let display = match std::io::stderr().is_terminal() {
            true => Shown::Bar(ProgressBar::new_spinner().with_style(spinner())),
            false => Shown::Lines,
        };
        let ticker = tokio::spawn(tick(command, display.clone(), Arc::clone(&tally), Arc::clone(&moving)));
        Self { command, tally, display, moving, begun: Instant::now(), ticker }
    }

    /// What is done.
    pub(crate) fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// Everything was found; from now on values move.
    pub(crate) fn begin_moving(&self) {
        if self.moving.set(Instant::now()).is_ok()
            && let Shown::Bar(bar) = &self.display
        {
            bar.set_length(self.tally.expected_bytes.load(Relaxed));
            bar.set_style(style());
        }
    }

    /// Says something that must not be lost between the redrawings of a bar.
    pub(crate) fn report(&self, line: &str) {
        match &self.display {
            Shown::Bar(bar) => bar.suspend(|| note(line)),
            Shown::Lines => note(line),
        }
    }

    /// Ends with a line for people and one for scripts.
    pub(crate) fn finish<T, E>(self, result: &Result<T, E>) {
        if let Shown::Bar(bar) = &self.display {
            bar.finish_and_clear();
        }
        let seconds = self.begun.elapsed().as_secs_f64();
        let tally = &self.tally;
        let summary = Summary {
            command: self.command,
            ok: result.is_ok(),
            keys: tally.keys.load(Relaxed),
            bytes: tally.bytes.load(Relaxed),
            skipped: tally.skipped.load(Relaxed),
            vanished: tally.vanished.load(Relaxed),
            failed: tally.failed.load(Relaxed),
            corrupt: tally.corrupt.load(Relaxed),
            seconds: (seconds * 1000.0).round() / 1000.0,
        };
        note(format_args!("{}: {} in {seconds:.1} s", self.command, amounts(tally, self.moving.get(), At::End)));
        // A struct of numbers is always JSON.
        if let Ok(line) = serde_json::to_string(&summary) {
            print(line);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.ticker.abort();
    }
}

/// Whether a line is one of many or the last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Way,
    End,
}

async fn tick(command: &'static str, display: Shown, tally: Arc<Tally>, moving: Arc<OnceLock<Instant>>) {
    let every = match display {
        Shown::Bar(_) => BAR_EVERY,
        Shown::Lines => LINE_EVERY,
    };
    let mut interval = time::interval_at(time::Instant::now() + every, every);
    loop {
        interval.tick().await;
        match &display {
            Shown::Bar(bar) => {
                bar.set_position(tally.bytes.load(Relaxed));
                bar.set_message(keys(&tally, moving.get()));
                bar.tick();
            }
            Shown::Lines => note(format_args!("{command}: {}", amounts(&tally, moving.get(), At::Way))),
        }
    }
}

fn keys(tally: &Tally, moving: Option<&Instant>) -> String {
    let (keys, expected) = (tally.keys.load(Relaxed), tally.expected_keys.load(Relaxed));
    match (moving, expected) {
        (None, _) => format!("{} keys found", HumanCount(expected)),
        (Some(_), 0) => format!("{} keys", HumanCount(keys)),
        (Some(_), _) => format!("{} of {} keys", HumanCount(keys), HumanCount(expected)),
    }
}

fn amounts(tally: &Tally, moving: Option<&Instant>, at: At) -> String {
    let Some(since) = moving else { return keys(tally, moving) };
    let (bytes, expected) = (tally.bytes.load(Relaxed), tally.expected_bytes.load(Relaxed));
    let of = match (at, expected) {
        (At::End, _) | (_, 0) => String::new(),
        (At::Way, expected) => format!(" of {}", BinaryBytes(expected)),
    };
    let rate = bytes as f64 / since.elapsed().as_secs_f64().max(0.001);
    format!("{}, {}{of}, {}/s", keys(tally, moving), BinaryBytes(bytes), BinaryBytes(rate as u64))
}

fn spinner() -> ProgressStyle {
    template("{spinner} {msg}")
}

fn style() -> ProgressStyle {
    template("{bar:30} {binary_bytes} of {binary_total_bytes}, {msg}, {binary_bytes_per_sec}, {eta} left")
}

fn template(text: &str) -> ProgressStyle {
    ProgressStyle::with_template(text).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_tell_what_is_known() {
        let tally = Tally::default();
        tally.expect(2048);
        tally.expect(0);
        assert_eq!(amounts(&tally, None, At::Way), "2 keys found");
        tally.keys.store(1, Relaxed);
        tally.bytes.store(1024, Relaxed);
        let line = amounts(&tally, Some(&Instant::now()), At::Way);
        assert!(line.starts_with("1 of 2 keys, 1.00 KiB of 2.00 KiB, "), "{line}");
    }

    #[test]
    fn templates_are_valid() {
        for text in ["{spinner} {msg}", "{bar:30} {binary_bytes} of {binary_total_bytes}"] {
            assert!(ProgressStyle::with_template(text).is_ok());
        }
    }
}
