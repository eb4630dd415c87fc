//! Making a store.

use std::{
    fs::{self, File},
    path::Path,
    sync::Arc,
};

use super::{Identity, index_damage, log_key};
use crate::{
    OpenError,
    durable::sync_dir,
    index::IndexOptions,
    log::{Log, LogFiles, LogStart},
    paths::Paths,
    values::Directory,
};

/// Makes a store. Its identity is written last; until then the file `making` says that there is nothing to lose.
pub(super) fn create(paths: &Paths, index: IndexOptions, files: &Arc<LogFiles>) -> Result<(), OpenError> {
    let io = |action, path: &Path| OpenError::io(action, path.to_owned());
    File::create(paths.making()).map_err(io("make", &paths.making()))?;
    sync_dir(&paths.dir)?;
    for part in [paths.index(), paths.log()] {
        if part.exists() {
            fs::remove_dir_all(&part).map_err(io("empty", &part))?;
        }
        fs::create_dir_all(&part).map_err(io("make", &part))?;
    }
    Directory::create(&paths.values()).map_err(io("make", &paths.values()))?;
    fs::create_dir_all(paths.lost_and_found()).map_err(io("make", &paths.lost_and_found()))?;
    let identity = Identity::new(index.kind);
    let start = LogStart { key: log_key(&identity), epoch: 0, next_round: 1, last: None };
    Log::begin(Arc::clone(files), start).map_err(io("make", &paths.log()))?;
    let index = index.open(&paths.index());
    let index = index.map_err(|error| index_damage(paths, error))?;
    index.sync().map_err(|error| index_damage(paths, error))?;
    drop(index);
    identity.write(paths)?;
    fs::remove_file(paths.making()).map_err(io("remove", &paths.making()))?;
    sync_dir(&paths.dir)?;
    // The store's own entry, and those of the directories above it that were made with it.
    for above in paths.dir.ancestors().skip(1).take(2).filter(|above| !above.as_os_str().is_empty()) {
        sync_dir(above)?;
    }
    Ok(())
}
