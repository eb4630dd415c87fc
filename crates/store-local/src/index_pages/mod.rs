//! The pages of an index that may be damaged, read without its library, which refuses such a file as a whole.

mod index_state;
mod pages;
mod rebuilt;
mod redb_pages;
mod sled_pages;

use std::{error::Error, fs::File, io, path::Path};

use self::pages::IndexPages;
pub(crate) use self::{index_state::IndexState, pages::read_part, rebuilt::RebuiltIndex};
use crate::{
    IndexKind,
    durable::write_durably,
    index::{Index, IndexError, PAGE_POSITIONS},
};

/// The records of the index in a directory, and how far they are known to be the last ones.
pub(crate) fn read_state(dir: &Path, kind: IndexKind, store_id: u64) -> IndexState {
    IndexState::new(scan(dir, kind), store_id)
}

/// The certain entries of the index in a directory. `None` unless everything outside of damaged pages, whose bounds are known,
/// is proven to be the state after one commit group.
pub(crate) fn rebuild(dir: &Path, kind: IndexKind, store_id: u64) -> Option<RebuiltIndex> {
    RebuiltIndex::of(scan(dir, kind), store_id)
}

/// True if the pages of the index in a directory agree with their checksums. Reads all of them, unless the index's library
/// compares checksums itself.
pub(crate) fn is_whole(dir: &Path, kind: IndexKind) -> io::Result<bool> {
    match kind {
        IndexKind::Sled => Ok(true),
        IndexKind::Redb => redb_pages::is_whole(&dir.join(kind.main_file())),
    }
}

/// Makes the places of the pages of an index durable, so that later damage to a page has bounds.
pub(crate) fn save_positions(index: &dyn Index, dir: &Path) -> Result<(), IndexError> {
    let Some(positions) = index.page_positions()? else { return Ok(()) };
    let written = write_durably(&dir.join(PAGE_POSITIONS), &positions);
    written.and_then(|()| File::open(dir)?.sync_all()).map_err(IndexError::Io)
}

/// The same where a failure only costs the bounds of later damage, such as on a full disk.
pub(crate) fn save_positions_if_possible(index: &dyn Index, dir: &Path) {
    if let Err(error) = save_positions(index, dir) {
        tracing::warn!(error = &error as &dyn Error, "the positions of the index's pages were not saved");
    }
}

fn scan(dir: &Path, kind: IndexKind) -> IndexPages {
    match kind {
        IndexKind::Sled => sled_pages::scan(dir),
        IndexKind::Redb => redb_pages::scan(&dir.join(kind.main_file())),
    }
}
