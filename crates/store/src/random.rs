//! Random numbers.

use std::hash::{BuildHasher, RandomState};

/// An unpredictable number: the standard library seeds its hashers from the system.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(())
}
