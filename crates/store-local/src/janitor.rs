//! The thread that removes files nothing refers to.

use std::{
    sync::{Arc, Weak, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::{pins::Pins, record::FileId, values::Directory};

/// How often pins are looked over for ones that were left.
const SWEEP: Duration = Duration::from_secs(1);

/// Takes files to remove. Cheap to clone; its thread ends when the last one is gone.
#[derive(Clone)]
pub(crate) struct Janitor {
    jobs: mpsc::Sender<Job>,
    directory: Directory,
}

enum Job {
    Remove(Vec<FileId>),
    /// Answers once all that was asked before is done.
    Drain(mpsc::Sender<()>),
    Watch(Weak<Pins>),
    Stop,
}

impl Janitor {
    /// Starts the thread.
    pub(crate) fn start(directory: Directory) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (sender, jobs) = mpsc::channel();
        let janitor = Self { jobs: sender, directory: directory.clone() };
        let thread = thread::Builder::new().name("zarrd-janitor".into()).spawn(move || work(&directory, &jobs))?;
        Ok((janitor, thread))
    }

    /// Removes files, some time soon.
    pub(crate) fn remove(&self, files: Vec<FileId>) {
        if !files.is_empty() {
            self.send(Job::Remove(files));
        }
    }

    /// Waits until all that was asked before is removed. Blocks.
    pub(crate) fn drain(&self) {
        let (sender, done) = mpsc::channel();
        self.send(Job::Drain(sender));
        // An error means that the thread has ended, which it does only with nothing left to do.
        let _ = done.recv();
    }

    /// Looks these pins over from now on. They hold a janitor themselves, so they are not kept.
    pub(crate) fn watch(&self, pins: &Arc<Pins>) {
        self.send(Job::Watch(Arc::downgrade(pins)));
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

fn work(directory: &Directory, jobs: &mpsc::Receiver<Job>) {
    let mut pins = Weak::<Pins>::new();
    loop {
        match jobs.recv_timeout(SWEEP) {
            Ok(Job::Remove(files)) => remove(directory, &files),
            Ok(Job::Drain(done)) => {
                let _ = done.send(());
            }
            Ok(Job::Watch(watched)) => pins = watched,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                if let Some(pins) = pins.upgrade() {
                    remove(directory, &pins.sweep());
                }
            }
            Ok(Job::Stop) | Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn remove(directory: &Directory, files: &[FileId]) {
    for id in files {
        if let Err(error) = directory.remove_file(*id) {
            tracing::warn!(file = id.path(), %error, "could not remove a value file that nothing refers to");
        }
    }
}
