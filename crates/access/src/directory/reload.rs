//! Reading what changed in a directory.

use std::{
    sync::Arc,
    time::{Instant, UNIX_EPOCH},
};

use super::{disk::Disk, handle::AccessDirectory};
use crate::{credential::Kind, denial::ReadError, record_files::FileChange, table::Table};

impl AccessDirectory {
    /// Reads what changed in the directory, which [`watch`](Self::watch) calls every 250 ms. While nothing changes, it takes a
    /// few system calls. A failure is that of [`status`](Self::status) until a later call succeeds.
    pub fn reload_if_changed(&self) {
        let mut disk = self.disk.lock();
        let result = self.read_changes(&mut disk);
        self.set_failure(result.err());
        self.settle_expiries(&mut disk);
    }

    /// Reads the directory for the first time.
    pub(super) fn read(&self) -> Result<(), Arc<ReadError>> {
        let mut disk = self.disk.lock();
        self.read_changes(&mut disk)?;
        self.settle_expiries(&mut disk);
        Ok(())
    }

    fn read_changes(&self, disk: &mut Disk) -> Result<(), ReadError> {
        let now = Instant::now();
        disk.read_clock(now)?;
        self.clock.raise(disk.clock);
        self.read_keys(disk, now)?;
        for kind in [Kind::Token, Kind::Link] {
            let changes = disk.records_mut(kind).refresh(now)?;
            if !changes.is_empty() {
                self.apply(disk, kind, changes);
            }
        }
        let (had_tokens, has_tokens) = {
            let state = self.state.read();
            (state.had_tokens, state.tokens.len() > 0)
        };
        if !had_tokens && (has_tokens || disk.had_tokens()?) {
            self.state.write().had_tokens = true;
        }
        Ok(())
    }

    fn read_keys(&self, disk: &mut Disk, now: Instant) -> Result<(), ReadError> {
        if let Some(ring) = disk.read_keys(now)? {
            self.state.write().set_ring(ring);
        }
        Ok(())
    }

    /// Reads the keys before a change that uses them.
    pub(super) fn refresh_keys(&self, disk: &mut Disk) -> Result<(), Arc<ReadError>> {
        self.status()?;
        self.read_keys(disk, Instant::now()).map_err(|error| {
            let error = Arc::new(error);
            self.state.write().failure = Some(Arc::clone(&error));
            error
        })
    }

    fn apply(&self, disk: &mut Disk, kind: Kind, changes: Vec<FileChange>) {
        let mut state = self.state.write();
        let table = state.table_mut(kind);
        for change in changes {
            match change {
                FileChange::Found(id, entry) => table.insert(id, entry),
                FileChange::Gone(id) => table.remove(id),
            }
        }
        let newest = table.valid().map(|valid| valid.record.created).max();
        self.clock.raise(newest.unwrap_or(UNIX_EPOCH));
        // Looked up again.
        disk.next_expiry = Some(UNIX_EPOCH);
    }

    /// Writes the time down if something has expired since, so that it stays expired after a restart, whatever the
    /// system's clock says then.
    fn settle_expiries(&self, disk: &mut Disk) {
        let now = self.clock.now();
        if disk.next_expiry.is_none_or(|next| now < next) {
            return;
        }
        let state = self.state.read();
        let expiries = |table: &Table| table.valid().filter_map(|valid| valid.record.expires).collect::<Vec<_>>();
        let expiries = [expiries(&state.tokens), expiries(&state.links)].concat();
        drop(state);
        disk.next_expiry = expiries.iter().copied().filter(|expires| *expires > now).min();
        if expiries.iter().any(|expires| *expires <= now && *expires > disk.clock) {
            self.mark_time(disk);
        }
    }

    /// Writes the time down. A failure is only logged: the high-water mark in memory remains.
    pub(super) fn mark_time(&self, disk: &mut Disk) {
        if let Err(error) = disk.write_clock(self.clock.now()) {
            let file = disk.clock_file();
            tracing::warn!(file = %file.display(), %error, "cannot write down the high-water mark of time");
        }
    }

    fn set_failure(&self, failure: Option<ReadError>) {
        if failure.is_none() && self.status().is_ok() {
            return;
        }
        let mut state = self.state.write();
        match (&state.failure, &failure) {
            (None, Some(error)) => {
                let error = error as &dyn std::error::Error;
                tracing::error!(error, "the access directory is not readable; all tokens and share links are denied");
            }
            (Some(_), None) => tracing::info!("the access directory is readable again"),
            (None, None) | (Some(_), Some(_)) => {}
        }
        state.failure = failure.map(Arc::new);
    }
}
