//! Checking every value.

use store::{Corruption, Key, StoreError};

use crate::{
    index::Step,
    record::{Place, Record},
    store::Core,
    values,
};

/// How far a check has come, or what it looked at in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Keys looked at.
    pub keys: u64,
    /// Bytes of their values.
    pub bytes: u64,
    /// Keys whose values are damaged.
    pub damaged: u64,
}

/// A value that is damaged.
#[derive(Debug)]
pub struct Damaged {
    /// Its key.
    pub key: Key,
    /// What is wrong with it.
    pub cause: Corruption,
}

/// Reads every value. Blocks.
pub(crate) fn check(
    core: &Core,
    mut progress: impl FnMut(&CheckReport),
) -> Result<(CheckReport, Vec<Damaged>), StoreError> {
    let (mut report, mut damaged) = (CheckReport::default(), Vec::new());
    let mut failed = None;
    core.with_index(|index| {
        index.scan(b"", &mut |key, bytes| {
            let Ok(name) = Key::from_bytes(key) else { return Step::Next };
            let checked = match Record::decode(key, bytes, core.store_id()) {
                None => Err(StoreError::Corrupt { key: name, cause: Corruption::Record }),
                Some(record) => {
                    report.bytes = report.bytes.saturating_add(record.size());
                    match record.place {
                        Place::Inline(_) => Ok(()),
                        Place::File(file) => values::verify(&core.directory, &name, file, &core.buffers),
                    }
                }
            };
            report.keys = report.keys.saturating_add(1);
            match checked {
                Ok(()) => {}
                Err(StoreError::Corrupt { key, cause }) => {
                    report.damaged = report.damaged.saturating_add(1);
                    damaged.push(Damaged { key, cause });
                }
                Err(error) => {
                    failed = Some(error);
                    return Step::Stop;
                }
            }
            progress(&report);
            Step::Next
        })
    })?;
    match failed {
        Some(error) => Err(error),
        None => Ok((report, damaged)),
    }
}
