//! Verification of every stored value.

use zarrd_store::{Corruption, Key, Prefix, StoreError};

use crate::{
    record::{Location, Record},
    store::StoreInner,
    values,
};

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

/// Reads and verifies every value. Blocks.
pub(crate) fn check(
    inner: &StoreInner,
    mut progress: impl FnMut(&CheckReport),
) -> Result<(CheckReport, Vec<CorruptValue>), StoreError> {
    let (mut report, mut damaged) = (CheckReport::default(), Vec::new());
    let mut after: Option<String> = None;
    loop {
        // Page by page, so that no lock is held while values are read.
        let page = page_after(inner, after.as_deref())?;
        let Some(last) = page.last() else { return Ok((report, damaged)) };
        after = Some(match last {
            Ok((key, _)) | Err(CorruptValue { key, .. }) => format!("{key}\0"),
        });
        for entry in page {
            report.keys = report.keys.saturating_add(1);
            if let Ok((_, record)) = &entry {
                report.bytes = report.bytes.saturating_add(record.size());
            }
            if let Some(found) = check_entry(inner, entry)? {
                report.corrupt = report.corrupt.saturating_add(1);
                damaged.push(found);
            }
            progress(&report);
        }
    }
}

/// A key with its record, unless the record is corrupt.
type Checked = Result<(Key, Record), CorruptValue>;

/// The number of keys that are looked up at a time.
const PAGE: usize = 1000;

fn page_after(inner: &StoreInner, after: Option<&str>) -> Result<Vec<Checked>, StoreError> {
    let (view, _gate) = inner.views.stable()?;
    let mut entries = view.entries(&Prefix::root(), after.unwrap_or_default())?;
    let mut page = Vec::new();
    while page.len() < PAGE {
        match entries.next() {
            Ok(Some(entry)) => page.push(Ok(entry)),
            Ok(None) => break,
            Err(StoreError::Corrupt { key, cause }) => page.push(Err(CorruptValue { key, cause })),
            Err(error) => return Err(error),
        }
    }
    Ok(page)
}

/// Reads and verifies one value. A value that was replaced in the meantime is not corrupt.
fn check_entry(inner: &StoreInner, entry: Checked) -> Result<Option<CorruptValue>, StoreError> {
    let (key, record) = match entry {
        Ok(entry) => entry,
        Err(damaged) => return Ok(Some(damaged)),
    };
    let Location::File(file) = &record.location else { return Ok(None) };
    match values::verify(&inner.directory, &key, *file, &inner.buffers) {
        Ok(()) => Ok(None),
        Err(StoreError::Corrupt { .. }) if inner.record(&key)?.as_ref() != Some(&record) => Ok(None),
        Err(StoreError::Corrupt { key, cause }) => Ok(Some(CorruptValue { key, cause })),
        Err(error) => Err(error),
    }
}
