//! Reading the changes of a directory in the background.

use std::{
    io,
    sync::{Arc, Weak},
    thread,
    time::Duration,
};

use super::handle::AccessDirectory;

/// The time between two reads. Changes must count within a second.
const INTERVAL: Duration = Duration::from_millis(250);

impl AccessDirectory {
    /// Starts a thread that calls [`reload_if_changed`](Self::reload_if_changed) four times a second until the directory
    /// is dropped. It is a thread of its own since a network file system may block it for long.
    pub fn watch(self: &Arc<Self>) -> io::Result<()> {
        let directory = Arc::downgrade(self);
        thread::Builder::new().name("access".to_owned()).spawn(move || reload(&directory)).map(drop)
    }
}

fn reload(directory: &Weak<AccessDirectory>) {
    loop {
        thread::sleep(INTERVAL);
        let Some(directory) = directory.upgrade() else { return };
        directory.reload_if_changed();
    }
}
