//! Results of scanning an index of either kind.

use std::{fs::File, io, os::unix::fs::FileExt};

use bytes::Bytes;

/// An entry of an index, as one of its pages has it. Its record has a checksum of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScannedEntry {
    /// The physical key.
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
    /// True if the page is proven to be the current one, with all of its changes.
    pub(crate) current: bool,
}

/// Keys that a damaged part of an index may have had: from the first one on, and before the second one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LostRange {
    pub(crate) from: Bytes,
    /// `None` up to the last key.
    pub(crate) to: Option<Bytes>,
    /// The damaged place, in words.
    pub(crate) place: String,
}

/// The entries of an index, as far as its pages can be read.
#[derive(Debug, Default)]
pub(crate) struct IndexPages {
    pub(crate) entries: Vec<ScannedEntry>,
    pub(crate) lost: Vec<LostRange>,
    /// True if entries outside of the lost ranges may be missing, or are of pages that are not proven to be current.
    pub(crate) is_uncertain: bool,
}

impl LostRange {
    /// Every key.
    pub(crate) fn all(place: impl Into<String>) -> Self {
        Self { from: Bytes::new(), to: None, place: place.into() }
    }

    /// True if the range contains a key.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        &*self.from <= key && self.to.as_ref().is_none_or(|to| key < &**to)
    }
}

/// A part of a file.
pub(crate) struct Part {
    /// The bytes; what does not exist or cannot be read is zero.
    pub(crate) bytes: Vec<u8>,
    /// The last error.
    pub(crate) error: Option<io::Error>,
}

/// Reads a part of a file, page by page if it cannot be read as a whole.
pub(crate) fn read_part(file: &File, offset: u64, len: usize) -> Part {
    const STEP: usize = 4096;
    let mut bytes = vec![0; len];
    if file.read_exact_at(&mut bytes, offset).is_ok() {
        return Part { bytes, error: None };
    }
    let (mut at, mut failed) = (offset, None);
    for step in bytes.chunks_mut(STEP) {
        step.fill(0);
        if let Err(error) = read_to_end(file, step, at) {
            step.fill(0);
            failed = Some(error);
        }
        at = at.saturating_add(step.len() as u64);
    }
    Part { bytes, error: failed }
}

/// Reads up to the end of a file.
fn read_to_end(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.read_at(bytes, offset) {
            Ok(0) => break,
            Ok(read) => {
                offset = offset.saturating_add(read as u64);
                bytes = bytes.get_mut(read..).unwrap_or_default();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(crate) fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
