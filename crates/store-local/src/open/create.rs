//! Creating a store.

use std::{
    fs::{self, File},
    path::Path,
    sync::Arc,
};

use super::{Identity, index_open_error, log_key};
use crate::{
    OpenError,
    durable::sync_dir,
    index::IndexOptions,
    log::{Log, LogFiles, LogStart},
    paths::Paths,
    values::Directory,
};

/// Creates a store. Its identity is written last; until then the file `making` marks that nothing can be lost.
pub(super) fn create(paths: &Paths, index: IndexOptions, files: &Arc<LogFiles>) -> Result<(), OpenError> {
    let io = |action, path: &Path| OpenError::io(action, path.to_owned());
    File::create(paths.creation_marker()).map_err(io("create", &paths.creation_marker()))?;
    sync_dir(&paths.dir)?;
    for dir in [paths.index(), paths.log()] {
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(io("empty", &dir))?;
        }
        fs::create_dir_all(&dir).map_err(io("create", &dir))?;
    }
    Directory::create(&paths.values()).map_err(io("create", &paths.values()))?;
    fs::create_dir_all(paths.orphans()).map_err(io("create", &paths.orphans()))?;
    let identity = Identity::new(index.kind);
    let start = LogStart { key: log_key(&identity), epoch: 0, next_group: 1, last: None };
    Log::create(Arc::clone(files), start).map_err(io("create", &paths.log()))?;
    let index = index.open(&paths.index());
    let index = index.map_err(|error| index_open_error(paths, error))?;
    index.sync().map_err(|error| index_open_error(paths, error))?;
    drop(index);
    identity.write(paths)?;
    fs::remove_file(paths.creation_marker()).map_err(io("remove", &paths.creation_marker()))?;
    sync_dir(&paths.dir)?;
    // Sync the directory entries of the store, and of the directories above it that were created with it.
    for above in paths.given().ancestors().skip(1).take(2).filter(|above| !above.as_os_str().is_empty()) {
        sync_dir(above)?;
    }
    Ok(())
}
