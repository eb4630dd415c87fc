//! The queue of a log, and the thread that writes it.

use std::{
    io, mem,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use prometheus_client::metrics::counter::Counter;

use super::output::{Output, WriteFailure};

/// The maximum size of the queued lines of one log, in bytes. Further lines are dropped.
const QUEUE_BYTES: usize = 4 << 20;
/// The size from which a queue is written without a pause, and the size that an empty queue retains, in bytes.
const EAGER_BYTES: usize = 256 << 10;
/// The pause between two batches, so that a batch has many lines if many are queued. A line that follows none for this
/// time is written at once.
const PAUSE: Duration = Duration::from_millis(5);
/// The time without dropped lines after which a log is complete again.
const RECOVERY: Duration = Duration::from_secs(10);
/// The time limit for writing the queued lines at the end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Writes lines on a thread of its own. Queueing a line never waits for the output.
#[derive(Debug)]
pub(super) struct LogWriter(Arc<Queue>);

#[derive(Debug)]
struct Queue {
    /// The name of the log.
    name: &'static str,
    state: Mutex<QueueState>,
    /// Signals a change of the state to the writer, and the end of the writer to those who close.
    changed: Condvar,
    /// The number of lines that were not written.
    dropped: Counter,
}

#[derive(Debug, Default)]
struct QueueState {
    /// Whole lines.
    lines: Vec<u8>,
    reopen: bool,
    closing: bool,
    ended: bool,
}

/// The next work of the writer.
struct Batch {
    lines: Vec<u8>,
    reopen: bool,
}

/// The state of the thread.
struct Worker {
    queue: Arc<Queue>,
    output: Output,
    /// The rest of a line of which a part was written; it precedes the next batch.
    torn: Vec<u8>,
    /// The number of dropped lines that were reported.
    reported: u64,
    /// The last time that lines were dropped, until the log is complete again.
    last_failure: Option<Instant>,
}

impl LogWriter {
    /// Starts the thread for a log.
    pub(super) fn start(name: &'static str, output: Output, dropped: Counter) -> io::Result<Self> {
        let queue =
            Arc::new(Queue { name, state: Mutex::default(), changed: Condvar::new(), dropped: dropped.clone() });
        let worker =
            Worker { queue: queue.clone(), output, torn: Vec::new(), reported: dropped.get(), last_failure: None };
        thread::Builder::new().name(format!("{name}-log")).spawn(|| worker.run())?;
        Ok(Self(queue))
    }

    /// Queues a line with its line feed, or drops it if the queue is full.
    pub(super) fn push(&self, line: &[u8]) {
        let mut state = self.0.state.lock();
        let before = state.lines.len();
        let after = before.saturating_add(line.len());
        if state.ended || after > QUEUE_BYTES {
            drop(state);
            self.0.dropped.inc();
            return;
        }
        state.lines.extend_from_slice(line);
        drop(state);
        if before == 0 || (before < EAGER_BYTES && after >= EAGER_BYTES) {
            self.0.changed.notify_all();
        }
    }

    /// Opens the output again before the next line is written.
    pub(super) fn reopen(&self) {
        self.0.state.lock().reopen = true;
        self.0.changed.notify_all();
    }

    /// Writes the queued lines, and ends the thread. Lines that are not written within some seconds are lost.
    pub(super) fn close(&self) {
        let deadline = Instant::now() + CLOSE_TIMEOUT;
        let mut state = self.0.state.lock();
        state.closing = true;
        self.0.changed.notify_all();
        while !state.ended {
            if self.0.changed.wait_until(&mut state, deadline).timed_out() {
                drop(state);
                tracing::warn!(log = self.0.name, "the last lines could not be written in time");
                return;
            }
        }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.0.state.lock().closing = true;
        self.0.changed.notify_all();
    }
}

impl Queue {
    /// Waits for lines; `None` at the end.
    fn next(&self, buffer: Vec<u8>) -> Option<Batch> {
        let mut state = self.state.lock();
        while state.lines.is_empty() && !state.reopen {
            if state.closing {
                state.ended = true;
                self.changed.notify_all();
                return None;
            }
            self.changed.wait(&mut state);
        }
        Some(Batch { lines: mem::replace(&mut state.lines, buffer), reopen: mem::take(&mut state.reopen) })
    }

    fn pause(&self) {
        let idle = |state: &mut QueueState| !state.closing && state.lines.len() < EAGER_BYTES;
        self.changed.wait_while_for(&mut self.state.lock(), idle, PAUSE);
    }
}

impl Worker {
    fn run(mut self) {
        let mut buffer = Vec::new();
        while let Some(Batch { mut lines, reopen }) = self.queue.next(buffer) {
            if reopen {
                self.reopen();
            }
            self.write(&lines);
            lines.clear();
            lines.shrink_to(EAGER_BYTES);
            buffer = lines;
            self.queue.pause();
        }
        if !self.torn.is_empty() {
            self.queue.dropped.inc();
        }
    }

    fn reopen(&mut self) {
        // The rest of a torn line belongs to the old file.
        if !self.torn.is_empty() && self.output.write(&mem::take(&mut self.torn)).is_err() {
            self.queue.dropped.inc();
        }
        if let Err(error) = self.output.reopen() {
            tracing::warn!(log = self.queue.name, %error, "cannot reopen the log; writing to the old file");
        }
    }

    /// Writes lines, after the rest of a torn one.
    fn write(&mut self, lines: &[u8]) {
        let failure = match self.torn.is_empty() {
            true => self.output.write(lines).err().map(|failure| self.drop_unwritten(lines, failure)),
            false => {
                let batch = [mem::take(&mut self.torn).as_slice(), lines].concat();
                self.output.write(&batch).err().map(|failure| self.drop_unwritten(&batch, failure))
            }
        };
        self.report(failure);
    }

    /// Drops the lines that were not written, except for the rest of a torn one.
    fn drop_unwritten(&mut self, batch: &[u8], WriteFailure { written, error }: WriteFailure) -> io::Error {
        let (done, rest) = batch.split_at_checked(written).unwrap_or((batch, &[]));
        let is_torn = done.last().is_some_and(|byte| *byte != b'\n');
        let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
        let (torn, unwritten) =
            if is_torn { rest.split_at_checked(end).unwrap_or((rest, &[])) } else { (&[][..], rest) };
        self.torn = torn.to_vec();
        let count = unwritten.iter().filter(|byte| **byte == b'\n').count();
        self.queue.dropped.inc_by(count as u64);
        error
    }

    /// Reports the beginning and the end of dropping lines, here rather than where they are dropped: the report may have
    /// to wait for the same output.
    fn report(&mut self, failure: Option<io::Error>) {
        let (name, now) = (self.queue.name, Instant::now());
        let dropped = self.queue.dropped.get();
        let more = dropped.saturating_sub(mem::replace(&mut self.reported, dropped));
        if failure.is_some() || more > 0 {
            let is_first = self.last_failure.replace(now).is_none();
            match failure {
                Some(error) if is_first => tracing::warn!(log = name, %error, "cannot write the log; dropping lines"),
                None if is_first => tracing::warn!(log = name, "the log is written too slowly; dropping lines"),
                _ => {}
            }
        } else if self.last_failure.is_some_and(|last| now.saturating_duration_since(last) >= RECOVERY) {
            self.last_failure = None;
            tracing::info!(log = name, dropped, "the log is complete again");
        }
    }
}
