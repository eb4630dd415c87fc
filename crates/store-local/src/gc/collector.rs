//! The thread that removes files nothing refers to.

use std::{
    sync::{Arc, Weak, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::pins::{Pins, ReplacedFile};
use crate::{record::FileId, values::Directory};

/// The interval at which pins are looked over for ones that were left.
const SWEEP: Duration = Duration::from_secs(1);

/// Takes files to remove. Cheap to clone; its thread ends when the last one is gone.
#[derive(Clone)]
pub(crate) struct GarbageCollector {
    jobs: mpsc::Sender<Job>,
    directory: Directory,
}

enum Job {
    Remove(Vec<FileId>),
    /// Files that a change replaced, removed unless a reader needs them.
    Replaced(u64, Vec<ReplacedFile>),
    /// Answers once all that was asked before is done.
    Drain(mpsc::Sender<()>),
    Stop,
}

impl GarbageCollector {
    /// Starts the thread.
    pub(crate) fn start(directory: Directory, pins: &Arc<Pins>) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (sender, jobs) = mpsc::channel();
        let collector = Self { jobs: sender, directory: directory.clone() };
        let pins = Arc::downgrade(pins);
        let thread = thread::Builder::new().name("zarrd-gc".into()).spawn(move || work(&directory, &pins, &jobs))?;
        Ok((collector, thread))
    }

    /// Removes files, some time soon.
    pub(crate) fn remove(&self, files: Vec<FileId>) {
        if !files.is_empty() {
            self.send(Job::Remove(files));
        }
    }

    /// Removes the files that the change of this number replaced as soon as no reader needs them.
    pub(crate) fn replaced(&self, number: u64, files: Vec<ReplacedFile>) {
        if !files.is_empty() {
            self.send(Job::Replaced(number, files));
        }
    }

    /// Waits until all that was asked before is removed. Blocks.
    pub(crate) fn drain(&self) {
        let (sender, done) = mpsc::channel();
        self.send(Job::Drain(sender));
        // An error means that the thread has ended, which it does only with nothing left to do.
        let _ = done.recv();
    }

    /// Ends the thread once all that was asked before is done.
    pub(crate) fn stop(&self) {
        self.send(Job::Stop);
    }

    fn send(&self, job: Job) {
        // After the thread has ended, what is left to remove is what was staged and never committed.
        if let Err(mpsc::SendError(Job::Remove(files))) = self.jobs.send(job) {
            remove(&self.directory, &files);
        }
    }
}

fn work(directory: &Directory, pins: &Weak<Pins>, jobs: &mpsc::Receiver<Job>) {
    let mut swept = Instant::now();
    loop {
        // The clock decides when pins are looked over, however many files there are to remove.
        let wait = SWEEP.saturating_sub(swept.elapsed());
        if wait.is_zero() {
            swept = Instant::now();
            if let Some(pins) = pins.upgrade() {
                remove(directory, &pins.sweep());
            }
            continue;
        }
        match jobs.recv_timeout(wait) {
            Ok(Job::Remove(files)) => remove(directory, &files),
            Ok(Job::Replaced(number, files)) => match pins.upgrade() {
                Some(pins) => remove(directory, &pins.replaced(number, &files)),
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
    for id in files {
        match directory.remove_file(*id) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(file = id.path(), %error, "could not remove a value file that nothing refers to");
            }
            _ => {}
        }
    }
}
