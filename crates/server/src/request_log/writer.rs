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
    /// True if the log of the program has another output.
    is_separate: bool,
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
        let is_separate = !matches!(output, Output::Stderr);
        let (state, changed) = (Mutex::default(), Condvar::new());
        let queue = Arc::new(Queue { name, is_separate, state, changed, dropped: dropped.clone() });
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
                // The thread may block the log of the program as well.
                if !self.0.is_separate {
                    return;
                }
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

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        io::{BufRead, BufReader, PipeReader},
        os::{fd::OwnedFd, unix::fs::PermissionsExt},
        path::Path,
    };

    use tempfile::TempDir;

    use super::*;

    fn file_writer(path: &Path, dropped: &Counter) -> LogWriter {
        LogWriter::start("test", Output::append(path, 0o640).unwrap(), dropped.clone()).unwrap()
    }

    /// A writer to a pipe that is not read yet.
    fn pipe_writer(dropped: &Counter) -> (LogWriter, PipeReader) {
        let (reader, writer) = io::pipe().unwrap();
        let output = Output::File { file: File::from(OwnedFd::from(writer)), path: "/dev/null".into(), mode: 0o600 };
        (LogWriter::start("test", output, dropped.clone()).unwrap(), reader)
    }

    fn worker(path: &Path, dropped: &Counter) -> Worker {
        let (state, changed, dropped) = (Mutex::default(), Condvar::new(), dropped.clone());
        let queue = Queue { name: "test", is_separate: true, state, changed, dropped };
        let output = Output::append(path, 0o640).unwrap();
        Worker { queue: Arc::new(queue), output, torn: Vec::new(), reported: 0, last_failure: None }
    }

    fn failure(written: usize) -> WriteFailure {
        WriteFailure { written, error: io::ErrorKind::StorageFull.into() }
    }

    #[test]
    fn lines_of_many_threads_are_whole_and_in_order() {
        let dir = TempDir::new().unwrap();
        let (path, dropped) = (dir.path().join("log"), Counter::default());
        let writer = file_writer(&path, &dropped);
        thread::scope(|scope| {
            for name in ["a", "b", "c", "d"] {
                let writer = &writer;
                scope.spawn(move || {
                    for number in 0..2_000 {
                        writer.push(format!("{name} {number} {}\n", name.repeat(number % 300)).as_bytes());
                    }
                });
            }
        });
        writer.close();
        let text = fs::read_to_string(&path).unwrap();
        for name in ["a", "b", "c", "d"] {
            let lines = text.lines().filter(|line| line.starts_with(name));
            let expected = (0..2_000).map(|number| format!("{name} {number} {}", name.repeat(number % 300)));
            assert!(lines.eq(expected), "the lines of {name}");
        }
        assert_eq!((text.lines().count(), dropped.get()), (8_000, 0));
    }

    #[test]
    fn output_that_accepts_nothing_delays_nobody() {
        let dropped = Counter::default();
        let (writer, reader) = pipe_writer(&dropped);
        let line = "x".repeat(999) + "\n";
        let begun = Instant::now();
        let pushed = (16 << 20) / line.len();
        for _ in 0..pushed {
            writer.push(line.as_bytes());
        }
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        // At most one full queue waits, another one is being written, and the pipe has some.
        let kept = (2 * QUEUE_BYTES + (1 << 20)) / line.len();
        assert!(dropped.get() >= (pushed - kept) as u64, "{}", dropped.get());
        // When the pipe is read, all other lines arrive.
        let lines = thread::spawn(|| BufReader::new(reader).lines().map_while(Result::ok).collect::<Vec<_>>());
        writer.close();
        drop(writer);
        let lines = lines.join().unwrap();
        assert!(lines.iter().all(|found| found.len() == 999));
        assert_eq!(lines.len() as u64 + dropped.get(), pushed as u64);
    }

    #[test]
    fn full_disk_and_closed_pipe_drop_lines() {
        let dropped = Counter::default();
        let writer = file_writer(Path::new("/dev/full"), &dropped);
        writer.push(b"a\n");
        writer.push(b"b\n");
        writer.close();
        assert_eq!(dropped.get(), 2);
        writer.push(b"after the end\n");
        assert_eq!(dropped.get(), 3);

        let (writer, reader) = pipe_writer(&dropped);
        drop(reader);
        writer.push(b"c\n");
        writer.close();
        assert_eq!(dropped.get(), 4);
    }

    #[test]
    fn close_ends_although_nothing_is_accepted() {
        let dropped = Counter::default();
        let (writer, _reader) = pipe_writer(&dropped);
        writer.push(&vec![b'\n'; QUEUE_BYTES]);
        let begun = Instant::now();
        writer.close();
        assert!((CLOSE_TIMEOUT..2 * CLOSE_TIMEOUT).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    }

    #[test]
    fn torn_line_is_completed_first() {
        let dir = TempDir::new().unwrap();
        let (path, dropped) = (dir.path().join("log"), Counter::default());
        let mut worker = worker(&path, &dropped);
        // The disk was full after `first\nsec`.
        fs::write(&path, "first\nsec").unwrap();
        worker.drop_unwritten(b"first\nsecond\nthird\nfourth\n", failure(9));
        assert_eq!(dropped.get(), 2);
        worker.write(b"fifth\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "first\nsecond\nfifth\n");
        // After a whole line, all others are dropped.
        worker.drop_unwritten(b"sixth\nseventh\n", failure(6));
        assert_eq!((dropped.get(), worker.torn.len()), (3, 0));
    }

    #[test]
    fn torn_line_ends_in_the_file_where_it_began() {
        let dir = TempDir::new().unwrap();
        let (path, old, dropped) = (dir.path().join("log"), dir.path().join("old"), Counter::default());
        let mut worker = worker(&path, &dropped);
        fs::write(&path, "fi").unwrap();
        worker.drop_unwritten(b"first\n", failure(2));
        fs::rename(&path, &old).unwrap();
        worker.reopen();
        worker.write(b"second\n");
        let read = |path| fs::read_to_string(path).unwrap();
        assert_eq!((read(&old), read(&path), dropped.get()), ("first\n".to_owned(), "second\n".to_owned(), 0));
    }

    #[test]
    fn renamed_file_is_left_and_a_new_one_is_private() {
        let dir = TempDir::new().unwrap();
        let (path, old, dropped) = (dir.path().join("log"), dir.path().join("old"), Counter::default());
        let writer = file_writer(&path, &dropped);
        writer.push(b"first\n");
        while fs::read_to_string(&path).unwrap().is_empty() {
            thread::sleep(PAUSE);
        }
        fs::rename(&path, &old).unwrap();
        writer.reopen();
        writer.push(b"second\n");
        writer.close();
        assert_eq!(fs::read_to_string(&old).unwrap(), "first\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "second\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777 & !0o640, 0);
    }

    #[test]
    fn missing_directory_leaves_the_old_file_open() {
        let dir = TempDir::new().unwrap();
        let (sub, dropped) = (dir.path().join("sub"), Counter::default());
        fs::create_dir(&sub).unwrap();
        let writer = file_writer(&sub.join("log"), &dropped);
        let moved = dir.path().join("moved");
        fs::rename(&sub, &moved).unwrap();
        writer.reopen();
        writer.push(b"line\n");
        writer.close();
        assert_eq!((fs::read_to_string(moved.join("log")).unwrap(), dropped.get()), ("line\n".to_owned(), 0));
    }
}
