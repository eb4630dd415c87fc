//! Raising the format of a store when a commit needs it.

use std::{
    io,
    sync::atomic::{AtomicU32, Ordering},
};

use parking_lot::Mutex;
use zarrd_store::StoreError;

use crate::{
    commit::{Action, PlainChange},
    open::{FORMAT_WITH_ATTRIBUTES, FORMAT_WITH_JOINED_VALUES, Identity},
    paths::Paths,
    values::Directory,
};

/// The format of the store.
pub(super) struct Format {
    current: AtomicU32,
    /// Held while the format is raised.
    raising: Mutex<()>,
}

impl Format {
    pub(super) fn of(identity: &Identity) -> Self {
        Self { current: AtomicU32::new(identity.format()), raising: Mutex::default() }
    }

    /// The format that some changes need, if the store does not have it.
    pub(super) fn lacking(&self, changes: &[PlainChange]) -> Option<u32> {
        changes.iter().map(format_of).max().filter(|needed| *needed > self.current.load(Ordering::Acquire))
    }

    /// Makes a format durable, so that programs which do not know it open the store no more. Blocks.
    pub(super) fn raise(
        &self,
        format: u32,
        identity: &Identity,
        directory: &Directory,
        paths: &Paths,
    ) -> Result<(), StoreError> {
        let _raising = self.raising.lock();
        if self.current.load(Ordering::Acquire) >= format {
            return Ok(());
        }
        let raised = identity.with_format(format);
        let written = directory.check_place().map_err(io::Error::other);
        written.map_err(|error| StoreError::io("raise the format of the store", error))?;
        raised.write(paths).map_err(|error| match error.is_out_of_space() {
            true => StoreError::OutOfSpace,
            false => StoreError::io("raise the format of the store", io::Error::other(error)),
        })?;
        raised.write_copy(paths);
        let dir = paths.given().display();
        tracing::info!(%dir, format, "raised the format of the store: earlier versions of zarrd do not open it any more");
        self.current.store(format, Ordering::Release);
        Ok(())
    }
}

/// The format that a change needs.
fn format_of(change: &PlainChange) -> u32 {
    match change {
        PlainChange::Key { action: Action::Set(value, _), .. } if value.is_joined() => FORMAT_WITH_JOINED_VALUES,
        change if needs_attributes(change) => FORMAT_WITH_ATTRIBUTES,
        _ => 0,
    }
}

fn needs_attributes(change: &PlainChange) -> bool {
    match change {
        PlainChange::Key { key, action: Action::Set(_, attributes), .. } => key.is_hidden() || !attributes.is_empty(),
        PlainChange::Key { key, action: Action::Put(_) | Action::Written, .. } => key.is_hidden(),
        _ => false,
    }
}
