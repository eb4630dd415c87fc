//! The reserve of disk space.

use store::StoreError;

use crate::values::Directory;

const LEAST: u64 = 16 << 20;
const MOST: u64 = 1 << 30;

/// Space that values may not take, so that the index can always go on and erasing works on a full disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reserve(Option<u64>);

impl Reserve {
    pub(crate) fn new(bytes: Option<u64>) -> Self {
        Self(bytes)
    }

    /// Fails with [`StoreError::OutOfSpace`] where `bytes` more would cut into the reserve.
    pub(crate) fn check(self, directory: &Directory, bytes: u64) -> Result<(), StoreError> {
        let (free, total) = directory.space().map_err(|error| StoreError::io("ask for the free space", error))?;
        let reserve = self.0.unwrap_or_else(|| (total / 20).clamp(LEAST, MOST));
        if free < reserve.saturating_add(bytes) { Err(StoreError::OutOfSpace) } else { Ok(()) }
    }
}
