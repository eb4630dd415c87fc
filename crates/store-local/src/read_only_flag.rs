//! The flag of a store that accepts no changes.

use std::{
    error::Error,
    sync::atomic::{AtomicBool, Ordering},
};

use zarrd_store::StoreError;

/// Set when a change could not be made durable, and from the start if the store was opened read-only. After a failed
/// write the kernel may have dropped the dirty pages, so that a retry would prove nothing: the store is read-only until
/// it is opened again and has checked its files.
#[derive(Debug, Default)]
pub(crate) struct ReadOnlyFlag(AtomicBool);

impl ReadOnlyFlag {
    pub(crate) fn new(read_only: bool) -> Self {
        Self(AtomicBool::new(read_only))
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.0.load(Ordering::Acquire) { Err(StoreError::ReadOnly) } else { Ok(()) }
    }

    pub(crate) fn set(&self, cause: &(dyn Error + 'static)) {
        if !self.0.swap(true, Ordering::AcqRel) {
            tracing::error!(
                error = cause,
                "a change could not be made durable, or may not be; the store is read-only until it is restarted"
            );
        }
    }
}
