//! Reading the changes of a directory in the background.

use std::{
    sync::{Arc, Weak},
    thread,
    time::Duration,
};

use super::handle::AccessDirectory;
use crate::{denial::ReadError, error::OpenError};

/// The time between two reads. Changes must count within a second.
const INTERVAL: Duration = Duration::from_millis(250);

impl AccessDirectory {
    /// Starts a thread that calls [`reload_if_changed`](Self::reload_if_changed) four times a second until the directory
    /// is dropped. It is a thread of its own since a network file system may block it for long.
    ///
    /// Fails if the system starts no thread.
    pub fn watch(self: &Arc<Self>) -> Result<(), OpenError> {
        let directory = Arc::downgrade(self);
        let started = thread::Builder::new().name("access".to_owned()).spawn(move || reload(&directory));
        let failed = |source| ReadError::Io { action: "watch", path: self.path().to_owned(), source };
        started.map(drop).map_err(|source| OpenError::Read(Arc::new(failed(source))))
    }
}

fn reload(directory: &Weak<AccessDirectory>) {
    loop {
        thread::sleep(INTERVAL);
        let Some(directory) = directory.upgrade() else { return };
        directory.reload_if_changed();
    }
}
