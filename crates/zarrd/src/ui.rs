//! Output of commands: messages on stderr, results on stdout, and the progress of long commands, as a bar on a terminal
//! and as a line every few seconds elsewhere.

use std::{
    error::Error,
    fmt::Display,
    io::{self, BufWriter, IsTerminal, Stdout, Write},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use indicatif::{BinaryBytes, HumanCount, ProgressBar, ProgressStyle};
use serde::Serialize;
use tokio::{task::JoinHandle, time};
use zarrd_access::{printable, printable_line, without_credentials, without_userinfo};

/// Interval between updates of a progress bar.
const BAR_INTERVAL: Duration = Duration::from_millis(100);
/// Interval between progress lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Counters of a command in progress.
#[derive(Debug, Default)]
pub(crate) struct ProgressCounters {
    /// Values to be processed.
    pub(crate) expected_keys: AtomicU64,
    /// Size of the values to be processed, in bytes.
    pub(crate) expected_bytes: AtomicU64,
    /// Processed values.
    pub(crate) keys: AtomicU64,
    /// Processed bytes, including those of values in progress.
    pub(crate) bytes: AtomicU64,
    /// Names that cannot be transferred.
    pub(crate) skipped: AtomicU64,
    /// Values that were transferred earlier.
    pub(crate) present: AtomicU64,
    /// Values that were erased after they had been listed.
    pub(crate) vanished: AtomicU64,
    /// Values that failed.
    pub(crate) failed: AtomicU64,
    /// Values that are corrupt.
    pub(crate) corrupt: AtomicU64,
}

/// Displays the progress of a command until it is dropped.
pub(crate) struct Progress {
    command: &'static str,
    counters: Arc<ProgressCounters>,
    display: ProgressDisplay,
    /// Start of the processing, after everything was listed.
    processing: Arc<OnceLock<Instant>>,
    start: Instant,
    ticker: JoinHandle<()>,
}

/// Buffered lines on stdout.
pub(crate) struct Output(BufWriter<Stdout>);

/// The result cannot be written to stdout.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to stdout")]
pub(crate) struct OutputError(#[source] io::Error);

/// Kind of progress display.
#[derive(Clone)]
enum ProgressDisplay {
    Bar(ProgressBar),
    Lines,
}

/// Kind of progress line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineKind {
    Interim,
    Final,
}

/// The line of JSON at the end of a command.
#[derive(Serialize)]
struct Summary {
    command: &'static str,
    ok: bool,
    keys: u64,
    bytes: u64,
    /// Only of a command that was resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    present: Option<u64>,
    skipped: u64,
    vanished: u64,
    failed: u64,
    corrupt: u64,
    seconds: f64,
}

/// Writes a result to stdout.
pub(crate) fn print(line: impl Display) {
    // A closed stdout is not an error: the reader has seen enough.
    let mut stdout = io::stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// Writes a message to stderr, without the credentials that it may have, and with escapes for invisible characters.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "zarrd: {}", printable_lines(&without_secrets(&text.to_string())));
}

/// Escapes the invisible characters of a text, except its line breaks.
fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

/// A text without tokens, share links, and the user names and passwords of URLs.
pub(crate) fn without_secrets(text: &str) -> String {
    without_userinfo(&without_credentials(text)).into_owned()
}

/// An error with its sources, with escapes for invisible characters: in one line, unless it shows a part of the
/// configuration file.
pub(crate) fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error_text(error);
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error_text(error));
        source = error.source();
    }
    text
}

/// The text of an error without its sources.
fn error_text(error: &(dyn Error + 'static)) -> String {
    let text = error.to_string();
    if error.is::<toml::de::Error>() { printable_lines(&text) } else { printable(&text).into_owned() }
}

impl Output {
    /// Writes a line.
    pub(crate) fn line(&mut self, line: impl Display) -> Result<(), OutputError> {
        writeln!(self.0, "{line}").map_err(OutputError)
    }

    /// Writes a line of JSON, with escapes for invisible characters.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), OutputError> {
        let json = serde_json::to_string(value).map_err(|error| OutputError(error.into()))?;
        self.line(printable_line(&json))
    }

    /// Flushes the buffer.
    pub(crate) fn finish(mut self) -> Result<(), OutputError> {
        self.0.flush().map_err(OutputError)
    }
}

impl Default for Output {
    fn default() -> Self {
        Self(BufWriter::new(io::stdout()))
    }
}

impl OutputError {
    /// The error of writing to stdout.
    pub(crate) fn of(error: io::Error) -> Self {
        Self(error)
    }

    /// True if the reader of stdout has closed it, as `head` does.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }
}

impl ProgressCounters {
    /// Counts a value to be processed.
    pub(crate) fn expect(&self, size: u64) {
        self.expected_keys.fetch_add(1, Relaxed);
        self.expected_bytes.fetch_add(size, Relaxed);
    }
}

impl Progress {
    /// Starts to display the progress of a command. Must be called within the runtime.
    pub(crate) fn start(command: &'static str) -> Self {
        let (counters, processing) = (Arc::<ProgressCounters>::default(), Arc::<OnceLock<Instant>>::default());
        let display = match io::stderr().is_terminal() {
            true => ProgressDisplay::Bar(ProgressBar::new_spinner().with_style(spinner_style())),
            false => ProgressDisplay::Lines,
        };
        let ticker = tokio::spawn(tick(command, display.clone(), Arc::clone(&counters), Arc::clone(&processing)));
        Self { command, counters, display, processing, start: Instant::now(), ticker }
    }

    /// The counters, which the command updates.
    pub(crate) fn counters(&self) -> &Arc<ProgressCounters> {
        &self.counters
    }

    /// Marks the start of the processing, after everything was listed.
    pub(crate) fn start_processing(&self) {
        if self.processing.set(Instant::now()).is_ok()
            && let ProgressDisplay::Bar(bar) = &self.display
        {
            bar.set_length(self.counters.expected_bytes.load(Relaxed));
            bar.set_style(bar_style());
        }
    }

    /// Writes a message to stderr without disturbing the bar.
    pub(crate) fn message(&self, line: &str) {
        match &self.display {
            ProgressDisplay::Bar(bar) => bar.suspend(|| note(line)),
            ProgressDisplay::Lines => note(line),
        }
    }

    /// Writes the final line to stderr and the summary to stdout.
    pub(crate) fn finish<T, E>(self, result: &Result<T, E>) {
        if let ProgressDisplay::Bar(bar) = &self.display {
            bar.finish_and_clear();
        }
        let seconds = self.start.elapsed().as_secs_f64();
        let counters = &self.counters;
        let summary = Summary {
            command: self.command,
            ok: result.is_ok(),
            keys: counters.keys.load(Relaxed),
            bytes: counters.bytes.load(Relaxed),
            present: Some(counters.present.load(Relaxed)).filter(|present| *present > 0),
            skipped: counters.skipped.load(Relaxed),
            vanished: counters.vanished.load(Relaxed),
            failed: counters.failed.load(Relaxed),
            corrupt: counters.corrupt.load(Relaxed),
            seconds: (seconds * 1000.0).round() / 1000.0,
        };
        let line = progress_line(counters, self.processing.get(), LineKind::Final);
        note(format_args!("{}: {line} in {seconds:.1} s", self.command));
        // A struct of numbers can always be serialized.
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

async fn tick(
    command: &'static str,
    display: ProgressDisplay,
    counters: Arc<ProgressCounters>,
    processing: Arc<OnceLock<Instant>>,
) {
    let period = match display {
        ProgressDisplay::Bar(_) => BAR_INTERVAL,
        ProgressDisplay::Lines => LINE_INTERVAL,
    };
    let mut interval = time::interval_at(time::Instant::now() + period, period);
    loop {
        interval.tick().await;
        match &display {
            ProgressDisplay::Bar(bar) => {
                bar.set_position(counters.bytes.load(Relaxed));
                bar.set_message(keys(&counters, processing.get()));
                bar.tick();
            }
            ProgressDisplay::Lines => {
                let line = progress_line(&counters, processing.get(), LineKind::Interim);
                note(format_args!("{command}: {line}"));
            }
        }
    }
}

fn keys(counters: &ProgressCounters, processing: Option<&Instant>) -> String {
    let (keys, expected) = (counters.keys.load(Relaxed), counters.expected_keys.load(Relaxed));
    match (processing, expected) {
        (None, _) => format!("{} keys found", HumanCount(expected)),
        (Some(_), 0) => format!("{} keys", HumanCount(keys)),
        (Some(_), _) => format!("{} of {} keys", HumanCount(keys), HumanCount(expected)),
    }
}

fn progress_line(counters: &ProgressCounters, processing: Option<&Instant>, kind: LineKind) -> String {
    let Some(start) = processing else { return keys(counters, processing) };
    let (bytes, expected) = (counters.bytes.load(Relaxed), counters.expected_bytes.load(Relaxed));
    let total = match (kind, expected) {
        (LineKind::Final, _) | (_, 0) => String::new(),
        (LineKind::Interim, expected) => format!(" of {}", BinaryBytes(expected)),
    };
    let rate = bytes as f64 / start.elapsed().as_secs_f64().max(0.001);
    format!("{}, {}{total}, {}/s", keys(counters, processing), BinaryBytes(bytes), BinaryBytes(rate as u64))
}

fn spinner_style() -> ProgressStyle {
    style("{spinner} {msg}")
}

fn bar_style() -> ProgressStyle {
    style("{bar:30} {binary_bytes} of {binary_total_bytes}, {msg}, {binary_bytes_per_sec}, {eta} left")
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_totals_after_listing() {
        let counters = ProgressCounters::default();
        counters.expect(2048);
        counters.expect(0);
        assert_eq!(progress_line(&counters, None, LineKind::Interim), "2 keys found");
        counters.keys.store(1, Relaxed);
        counters.bytes.store(1024, Relaxed);
        let line = progress_line(&counters, Some(&Instant::now()), LineKind::Interim);
        assert!(line.starts_with("1 of 2 keys, 1.00 KiB of 2.00 KiB, "), "{line}");
    }

    #[test]
    fn templates_are_valid() {
        for text in ["{spinner} {msg}", "{bar:30} {binary_bytes} of {binary_total_bytes}"] {
            assert!(ProgressStyle::with_template(text).is_ok());
        }
    }
}
