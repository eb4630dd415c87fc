//! Metadata of values.

use std::time::SystemTime;

use crate::Version;

/// The metadata of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueMeta {
    /// The length of the complete value, in bytes.
    pub size: u64,
    /// The version.
    pub version: Version,
    /// The time of the set, in milliseconds.
    pub modified: SystemTime,
}
