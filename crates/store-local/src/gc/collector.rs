//! The garbage collector thread, which removes unreferenced value files.

use std::{
    sync::{Arc, Weak, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::pins::{Pins, ReplacedFile};
use crate::{record::FileId, values::Directory};

/// The interval at which expired pins are looked for.
const PIN_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A handle of the garbage collector. Clones are cheap; the thread ends with the last one.
#[derive(Clone)]
pub(crate) struct GarbageCollector {
    jobs: mpsc::Sender<Job>,
    directory: Directory,
}

enum Job {
    Remove(Vec<FileId>),
    /// Files that a change replaced, to be removed unless a reader needs them.
    Replaced(u64, Vec<ReplacedFile>),
    /// Replies when all earlier jobs are done.
    Drain(mpsc::Sender<()>),
    Stop,
}

impl GarbageCollector {
    /// Starts the thread.
    pub(crate) fn start(directory: Directory, pins: &Arc<Pins>) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (sender, jobs) = mpsc::channel();
        let collector = Self { jobs: sender, directory: directory.clone() };
        let pins = Arc::downgrade(pins);
        let thread = thread::Builder::new().name("zarrd-gc".into()).spawn(move || run(&directory, &pins, &jobs))?;
        Ok((collector, thread))
    }

    /// Removes files in the background.
    pub(crate) fn remove(&self, files: Vec<FileId>) {
        if !files.is_empty() {
            self.send(Job::Remove(files));
        }
    }

    /// Removes the files that the change with this number replaced, once no reader needs them.
    pub(crate) fn remove_replaced(&self, number: u64, files: Vec<ReplacedFile>) {
        if !files.is_empty() {
            self.send(Job::Replaced(number, files));
        }
    }

    /// Ends the snapshots that retain files, and removes these in the background.
    pub(crate) fn end_snapshots(&self, pins: &Pins) {
        self.remove(pins.end_snapshots());
    }

    /// Waits until all earlier jobs are done. Blocks.
    pub(crate) fn drain(&self) {
        let (sender, done) = mpsc::channel();
        self.send(Job::Drain(sender));
        // The thread only ends without remaining jobs.
        let _ = done.recv();
    }

    /// Stops the thread after all earlier jobs.
    pub(crate) fn stop(&self) {
        self.send(Job::Stop);
    }

    fn send(&self, job: Job) {
        // After the thread has stopped, only files that were never committed are removed.
        if let Err(mpsc::SendError(Job::Remove(files))) = self.jobs.send(job) {
            remove(&self.directory, &files);
        }
    }
}

fn run(directory: &Directory, pins: &Weak<Pins>, jobs: &mpsc::Receiver<Job>) {
    let mut last_check = Instant::now();
    loop {
        // The clock determines when pins are checked, however many files are to be removed.
        let wait = PIN_CHECK_INTERVAL.saturating_sub(last_check.elapsed());
        if wait.is_zero() {
            last_check = Instant::now();
            if let Some(pins) = pins.upgrade() {
                remove(directory, &pins.end_expired());
            }
            continue;
        }
        match jobs.recv_timeout(wait) {
            Ok(Job::Remove(files)) => remove(directory, &files),
            Ok(Job::Replaced(number, files)) => match pins.upgrade() {
                Some(pins) => remove(directory, &pins.release_replaced(number, &files)),
                None => remove(directory, &files.iter().map(|file| file.id).collect::<Vec<_>>()),
            },
            Ok(Job::Drain(done)) => {
                let _ = done.send(());
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Ok(Job::Stop) | Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn remove(directory: &Directory, files: &[FileId]) {
    if !files.is_empty()
        && let Err(error) = directory.check_place()
    {
        return tracing::warn!(%error, "unreferenced value files are not removed");
    }
    for id in files {
        match directory.remove_value(*id) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(file = id.path(), %error, "could not remove an unreferenced value file");
            }
            _ => {}
        }
    }
}
