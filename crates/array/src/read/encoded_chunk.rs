//! Encoded chunks: values of the store, or ranges of them.

use std::ops::Range;

use store::{Key, Version};

/// An encoded chunk: a value, or a range of one.
#[derive(Clone, Debug)]
pub(crate) struct EncodedChunk {
    pub(crate) key: Key,
    pub(crate) version: Version,
    pub(crate) range: Range<u64>,
}
