//! The reserve of disk space and inodes.

use zarrd_store::StoreError;

use super::{Inodes, Space};

const MIN_BYTES: u64 = 16 << 20;
const MAX_BYTES: u64 = 1 << 30;
const MIN_INODES: u64 = 32;
const MAX_INODES: u64 = 4096;

/// Space that values may not use, so that the index can be written and keys can be erased on a full disk. The ballast
/// is part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reserve(Option<u64>);

impl Reserve {
    pub(crate) fn new(bytes: Option<u64>) -> Self {
        Self(bytes)
    }

    /// Fails with [`StoreError::OutOfSpace`] if `bytes` more, or a file more, would use the reserve. `ballast` is the size of the
    /// ballast.
    pub(crate) fn check(self, space: Space, ballast: u64, bytes: u64) -> Result<(), StoreError> {
        let reserve = self.0.unwrap_or_else(|| (space.total / 20).clamp(MIN_BYTES, MAX_BYTES).min(space.total / 4));
        let reserve = reserve.saturating_sub(ballast);
        if space.free < reserve.saturating_add(bytes) || space.inodes.is_some_and(are_few) {
            Err(StoreError::OutOfSpace)
        } else {
            Ok(())
        }
    }
}

fn are_few(inodes: Inodes) -> bool {
    inodes.free < (inodes.total / 100).clamp(MIN_INODES, MAX_INODES).min(inodes.total / 4)
}
