//! Values whose files are missing after a start, which only a copy of the store's files leaves.

use std::collections::HashSet;

use zarrd_store::{Key, StoreError};

use crate::{
    record::{FileId, Record},
    values::Directory,
    view::Views,
};

/// The number of keys that are named.
const NAMED: usize = 10;

/// Names the keys whose value files are among `suspected` and do not exist. Blocks.
pub(super) fn report_missing(views: &Views, directory: &Directory, suspected: &HashSet<FileId>) {
    match missing(views, directory, suspected) {
        Ok(missing) if missing.is_empty() => {}
        Ok(missing) => {
            let named: Vec<&str> = missing.iter().take(NAMED).map(Key::as_str).collect();
            tracing::error!(
                values = missing.len(),
                keys = ?named,
                "the files of values are missing: the store was not copied or restored as a whole; zarrd check names all of \
                 them, and each can be set again or erased"
            );
        }
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "could not find out which values are missing");
        }
    }
}

fn missing(views: &Views, directory: &Directory, suspected: &HashSet<FileId>) -> Result<Vec<Key>, StoreError> {
    let (mut missing, mut after) = (Vec::new(), None);
    // Most files that are suspected were replaced and removed after their entries were read.
    while !suspected.is_empty() {
        let page = views.page_after(after.as_ref())?;
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        for (key, record) in page {
            let Ok(record) = record else { continue };
            let file = record.file().map(|file| file.id).filter(|id| suspected.contains(id));
            if file.is_some_and(|id| !directory.has_file(id)) && is_current(views, &key, &record)? {
                missing.push(key);
            }
        }
    }
    Ok(missing)
}

/// True if the key was not set or erased since its record was read.
fn is_current(views: &Views, key: &Key, record: &Record) -> Result<bool, StoreError> {
    let (view, _gate) = views.stable()?;
    Ok(view.record(key)?.as_ref() == Some(record))
}
