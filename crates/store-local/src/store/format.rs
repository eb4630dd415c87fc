//! Raising the format of a store when a commit needs it.

use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use zarrd_store::StoreError;

use crate::{
    commit::{Action, PlainChange},
    open::Identity,
    paths::Paths,
    values::Directory,
};

/// Whether the store has the format that attributes and uploads need.
pub(super) struct Format {
    has_attributes: AtomicBool,
    /// Held while the format is raised.
    raising: Mutex<()>,
}

impl Format {
    pub(super) fn of(identity: &Identity) -> Self {
        Self { has_attributes: AtomicBool::new(identity.has_attributes()), raising: Mutex::default() }
    }

    /// True if the store does not have the format that some changes need.
    pub(super) fn lacks(&self, changes: &[PlainChange]) -> bool {
        changes.iter().any(needs_attributes) && !self.has_attributes.load(Ordering::Acquire)
    }

    /// Makes the format of attributes and uploads durable, so that programs which do not know them open the store no more.
    /// Blocks.
    pub(super) fn raise(&self, identity: &Identity, directory: &Directory, paths: &Paths) -> Result<(), StoreError> {
        let _raising = self.raising.lock();
        if self.has_attributes.load(Ordering::Acquire) {
            return Ok(());
        }
        let raised = identity.with_attributes();
        let written = directory.check_place().map_err(io::Error::other);
        written.map_err(|error| StoreError::io("raise the format of the store", error))?;
        raised.write(paths).map_err(|error| match error.is_out_of_space() {
            true => StoreError::OutOfSpace,
            false => StoreError::io("raise the format of the store", io::Error::other(error)),
        })?;
        raised.write_copy(paths);
        let dir = paths.given().display();
        tracing::info!(%dir, "raised the format of the store to 3: it has attributes or uploads");
        self.has_attributes.store(true, Ordering::Release);
        Ok(())
    }
}

fn needs_attributes(change: &PlainChange) -> bool {
    match change {
        PlainChange::Key { key, action: Action::Set(_, attributes), .. } => key.is_hidden() || !attributes.is_empty(),
        PlainChange::Key { key, action: Action::Put(_) | Action::Written, .. } => key.is_hidden(),
        _ => false,
    }
}
