//! Rebuilding a damaged index from what is whole of it.
//!
//! > A sector in the middle of the index is overwritten. A new index is made of all pages that are proven to be current. The
//! > keys of the damaged page are damaged, all others are served, and the damaged index stays aside.

use std::{fs, path::Path};

use bytes::Bytes;

use super::{Checkpointer, Generations, VerifyState};
use crate::{
    index::{IndexError, IndexOptions},
    index_pages::{self, RebuiltIndex, rebuild},
    keyspace::{META_KEY, Meta},
    paths::Paths,
};

/// The maximum size of a batch, in bytes.
const MAX_BATCH_BYTES: usize = 256 << 10;
/// The maximum number of entries in a batch.
const MAX_BATCH: usize = 1024;
/// The number of times that an open store rebuilds its index.
const MAX_REBUILDS: u32 = 8;

/// Makes an index in `dir`, which is empty, durably.
pub(crate) fn write_rebuilt(rebuilt: &RebuiltIndex, dir: &Path, options: IndexOptions) -> Result<(), IndexError> {
    let index = options.open(dir)?;
    let mut meta = Meta { applied: rebuilt.applied, ..Meta::default() };
    rebuilt.counted().for_each(|(key, value)| meta.add(key, value));
    let (mut batch, mut bytes) = (Vec::new(), 0_usize);
    for (key, value) in &rebuilt.entries {
        bytes = bytes.saturating_add(key.len()).saturating_add(value.len());
        batch.push((key.clone(), Some(value.clone())));
        if batch.len() >= MAX_BATCH || bytes >= MAX_BATCH_BYTES {
            index.apply(std::mem::take(&mut batch))?;
            bytes = 0;
        }
    }
    batch.push((Bytes::from_static(META_KEY), Some(meta.encode())));
    index.apply(batch)?;
    index.sync()
}

/// Makes the next generation, and switches to it. The damaged one, which is closed, is moved aside.
pub(crate) fn replace_generation(
    paths: &Paths,
    generations: &mut Generations,
    rebuilt: &RebuiltIndex,
    options: IndexOptions,
) -> Result<(), IndexError> {
    let (damaged, dir) = (generations.dir(), generations.next_dir());
    if dir.exists() {
        fs::remove_dir_all(&dir).map_err(IndexError::Io)?;
    }
    write_rebuilt(rebuilt, &dir, options)?;
    generations.switch().map_err(IndexError::Io)?;
    let aside = paths.damaged_index(&damaged);
    if let Err(error) = fs::rename(&damaged, &aside) {
        tracing::warn!(error = &error as &dyn std::error::Error, "the damaged index could not be moved aside");
    }
    report_rebuilt(rebuilt, &paths.shown(&aside));
    Ok(())
}

/// Logs what a new index has, and where the damaged one is.
pub(crate) fn report_rebuilt(rebuilt: &RebuiltIndex, damaged: &Path) {
    tracing::error!(
        damaged_index = %damaged.display(),
        entries = rebuilt.entries.len(),
        lost_records = rebuilt.lost_records,
        lost_ranges = rebuilt.lost_ranges,
        "the index was damaged, and was rebuilt from what is whole; keys whose records are lost are listed as damaged"
    );
}

impl Checkpointer {
    /// Rebuilds the index after it failed with `cause`. Returns false, without a change, if its damage has no bounds.
    pub(super) fn rebuild_after(&mut self, cause: &IndexError) -> Result<bool, IndexError> {
        self.rebuilds = self.rebuilds.saturating_add(1);
        index_pages::save_positions_if_possible(&*self.writer.index, &self.generations.dir());
        if self.rebuilds > MAX_REBUILDS || self.read_rebuilt().is_none() {
            return Ok(false);
        }
        tracing::warn!(error = cause as &dyn std::error::Error, "the index is damaged; it is rebuilt");
        self.abort_compaction("the index is damaged");
        self.close_index();
        // What the index wrote while it was closed counts too.
        let rebuilt = self.read_rebuilt();
        if let Some(rebuilt) = &rebuilt {
            self.directory.check_place().map_err(|error| IndexError::Io(std::io::Error::other(error)))?;
            replace_generation(&self.paths, &mut self.generations, rebuilt, self.index_options)?;
            // Nothing is left to be verified.
            self.verify = VerifyState::Done;
        }
        self.open_index()?;
        self.publish_index();
        Ok(rebuilt.is_some())
    }

    /// The certain entries of the index, if they are those that were applied.
    fn read_rebuilt(&self) -> Option<RebuiltIndex> {
        let rebuilt = rebuild(&self.generations.dir(), self.index_options.kind, self.store_id);
        rebuilt.filter(|rebuilt| rebuilt.applied == self.writer.meta.applied)
    }
}
