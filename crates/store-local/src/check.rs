//! Verification of every stored value.

use zarrd_store::{Corruption, Key, StoreError};

use crate::{record::Location, store::StoreInner, values, view::ViewEntry};

/// The progress of a check, or its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The number of keys checked.
    pub keys: u64,
    /// The size of their values, in bytes.
    pub bytes: u64,
    /// The number of keys whose values are corrupt.
    pub corrupt: u64,
}

/// A value that failed the check.
#[derive(Debug)]
pub struct CorruptValue {
    /// The key.
    pub key: Key,
    /// The damage.
    pub cause: Corruption,
}

/// The result of a check.
#[derive(Debug)]
pub struct Checked {
    /// The number of values.
    pub report: CheckReport,
    /// The values that failed the check, in the order of their keys.
    pub corrupt: Vec<CorruptValue>,
    /// The end of the readable part of the index, if a part of it cannot be read.
    pub unreadable_index: Option<UnreadableIndex>,
}

/// An index that cannot be read to its end.
#[derive(Debug)]
pub struct UnreadableIndex {
    /// The last key that was read; `None` if none was.
    pub after: Option<Key>,
    /// The failure of the index.
    pub cause: StoreError,
}

/// Reads and verifies every value. Damaged values, and an index that cannot be read to its end, are part of the result.
/// Blocks.
pub(crate) fn check(inner: &StoreInner, mut progress: impl FnMut(&CheckReport)) -> Result<Checked, StoreError> {
    let (mut report, mut corrupt, mut after) = (CheckReport::default(), Vec::new(), None);
    loop {
        let page = match inner.views.page_after(after.as_ref()) {
            Err(cause @ StoreError::Backend { .. }) => {
                return Ok(Checked { report, corrupt, unreadable_index: Some(UnreadableIndex { after, cause }) });
            }
            page => page?,
        };
        let Some((last, _)) = page.last() else { return Ok(Checked { report, corrupt, unreadable_index: None }) };
        after = Some(last.clone());
        for entry in page {
            report.keys = report.keys.saturating_add(1);
            if let (_, Ok(record)) = &entry {
                report.bytes = report.bytes.saturating_add(record.size());
            }
            if let Some(found) = check_entry(inner, entry)? {
                report.corrupt = report.corrupt.saturating_add(1);
                corrupt.push(found);
            }
            progress(&report);
        }
    }
}

/// Reads and verifies one value. A value that was replaced in the meantime is not corrupt.
fn check_entry(inner: &StoreInner, (key, record): ViewEntry) -> Result<Option<CorruptValue>, StoreError> {
    let record = match record {
        Ok(record) => record,
        Err(cause) => return Ok(Some(CorruptValue { key, cause })),
    };
    let Location::File(file) = &record.location else { return Ok(None) };
    match values::verify(&inner.directory, &key, *file, &inner.buffers) {
        Ok(()) => Ok(None),
        Err(StoreError::Corrupt { .. }) if inner.record(&key)?.as_ref() != Some(&record) => Ok(None),
        Err(StoreError::Corrupt { key, cause }) => Ok(Some(CorruptValue { key, cause })),
        Err(error) => Err(error),
    }
}
