//! Removing the entries below erased prefixes. [`keyspace`](crate::keyspace) describes the phases of a sweep.

use std::sync::Arc;

use bytes::Bytes;

use super::{Checkpointer, writer::Changes};
use crate::{
    index::IndexError,
    keyspace::{Phase, Sweep, Sweeps, logical_key, sweep_space},
};

impl Checkpointer {
    pub(super) fn has_sweeps(&self) -> bool {
        self.views.parts().is_ok_and(|parts| !parts.sweeps.0.is_empty())
    }

    /// Continues the oldest sweep.
    pub(super) fn sweep_step(&mut self) -> Result<(), IndexError> {
        let Ok(parts) = self.views.parts() else { return Ok(()) };
        let Some(sweep) = parts.sweeps.0.first() else { return Ok(()) };
        match sweep.phase {
            Phase::Deleting => self.delete_batch(sweep, &parts.sweeps),
            Phase::Moving => self.move_batch(sweep, &parts.sweeps),
        }
    }

    fn delete_batch(&mut self, sweep: &Sweep, sweeps: &Sweeps) -> Result<(), IndexError> {
        let from = if sweep.prefix.is_root() { crate::keyspace::FIRST_KEY } else { sweep.prefix.as_bytes() };
        let dead = self.read_entries(from, sweep.prefix.as_bytes())?;
        if dead.is_empty() {
            return self.start_moving(sweep, sweeps);
        }
        let files = dead.iter().filter_map(|(key, record)| self.replaced_file_of(sweep.number, key, record)).collect();
        self.apply_batch(dead.into_iter().map(|(key, _)| (key, None)).collect())?;
        self.collector.remove_replaced(sweep.number, files);
        Ok(())
    }

    fn start_moving(&mut self, sweep: &Sweep, sweeps: &Sweeps) -> Result<(), IndexError> {
        let moving = Sweep { phase: Phase::Moving, ..sweep.clone() };
        let mut all = sweeps.clone();
        all.0.iter_mut().filter(|other| other.number == sweep.number).for_each(|other| *other = moving.clone());
        // From now on readers look at both locations. Readers of only one must finish before entries move.
        if !self.views.try_replace_when_stable(|parts| parts.sweeps = Arc::new(all)) {
            std::thread::sleep(std::time::Duration::from_millis(1));
            return Ok(());
        }
        self.apply_batch(Changes::from([(moving.key(), Some(moving.encode()))]))
    }

    fn move_batch(&mut self, sweep: &Sweep, sweeps: &Sweeps) -> Result<(), IndexError> {
        let space = sweep_space(sweep.number);
        let entries = self.read_entries(&space, &space)?;
        if entries.is_empty() {
            self.apply_batch(Changes::from([(sweep.key(), None)]))?;
            self.writer.sync()?;
            let rest = sweeps.0.iter().filter(|other| other.number != sweep.number).cloned().collect();
            self.views.replace(|parts| parts.sweeps = Arc::new(Sweeps(rest)));
            tracing::debug!(prefix = %sweep.prefix, "removed what was below an erased prefix");
            return Ok(());
        }
        let (mut changes, mut erased) = (Changes::new(), Vec::new());
        for (physical, record) in entries {
            let key = logical_key(&physical);
            match sweeps.covering(key).filter(|newest| newest.number != sweep.number) {
                // The key was erased again since.
                Some(newer) => erased.push((newer.number, self.replaced_file_of(newer.number, &physical, &record))),
                None => {
                    changes.insert(Bytes::copy_from_slice(key), Some(record));
                }
            }
            changes.insert(physical, None);
        }
        let views = Arc::clone(&self.views);
        let Some(moved) = views.try_when_stable(|| self.apply_batch(changes)) else {
            std::thread::sleep(std::time::Duration::from_millis(1));
            return Ok(());
        };
        moved?;
        for (number, file) in erased {
            self.collector.remove_replaced(number, file.into_iter().collect());
        }
        Ok(())
    }

    /// The entries of one batch, from a physical key on, that begin with `prefix`.
    fn read_entries(&self, from: &[u8], prefix: &[u8]) -> Result<Vec<(Bytes, Bytes)>, IndexError> {
        let mut found = Vec::new();
        for entry in self.writer.index.iter(from)? {
            let (key, record) = entry?;
            if !key.starts_with(prefix) || found.len() >= self.writer.limit() {
                break;
            }
            found.push((key, record));
        }
        Ok(found)
    }
}
