//! Metadata of values.

use std::time::SystemTime;

use crate::Version;

/// The metadata of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueMeta {
    /// The whole value's length in bytes.
    pub size: u64,
    /// Its version.
    pub version: Version,
    /// The time it was set, in milliseconds.
    pub modified: SystemTime,
}
