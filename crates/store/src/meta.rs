//! Metadata of values.

use std::time::SystemTime;

use crate::{Attributes, Version};

/// The metadata of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueMeta {
    /// The length of the complete value, in bytes.
    pub size: u64,
    /// The version.
    pub version: Version,
    /// The time of the set, in milliseconds.
    pub modified: SystemTime,
    /// The attributes. A listing may leave them out: [`head`](crate::ReadableStore::head) and
    /// [`get`](crate::ReadableStore::get) have them.
    pub attributes: Attributes,
}
