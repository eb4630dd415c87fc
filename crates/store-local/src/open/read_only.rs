//! Opening a store without writing into its directory.

use std::{fs, path::Path, sync::Arc};

use tempfile::TempDir;

use super::{
    Identity, check_index_is_free, check_kind, check_log_matches_index, format_1, incomplete, index_open_error,
    index_options, log_key, read_index, replayed::replay_read_only, sizes,
};
use crate::{
    FileCorruption, OpenError, Options, Purpose,
    checkpoint::Generations,
    clean_shutdown::{self, CleanShutdown},
    index::Index,
    keyspace::Sweeps,
    lock::Lock,
    log::{LogFiles, replay},
    paths::Paths,
    space::{Ballast, Sizes},
    values::Directory,
    view::Memtable,
};

/// The parts of a store that was opened read-only.
pub(crate) struct OpenedReadOnly {
    pub(crate) lock: Lock,
    pub(crate) paths: Paths,
    pub(crate) identity: Identity,
    pub(crate) sizes: Sizes,
    pub(crate) files: Arc<LogFiles>,
    pub(crate) ballast: Arc<Ballast>,
    pub(crate) index: Arc<dyn Index>,
    /// The copy of the index that is read, since sled and redb write when they open one.
    pub(crate) copy: TempDir,
    pub(crate) sweeps: Sweeps,
    pub(crate) replayed: Memtable,
    pub(crate) epoch: u64,
    pub(crate) directory: Directory,
}

/// Opens an existing store. Blocks.
pub(crate) fn open_read_only(dir: &Path, options: &Options) -> Result<OpenedReadOnly, OpenError> {
    let paths = Paths::at(dir);
    let lock = Lock::take_shared(&paths)?;
    incomplete::check_purpose(&paths, Purpose::Use)?;
    if !paths.identity().exists() {
        return Err(OpenError::NotAStore { dir: dir.to_owned() });
    }
    let identity = Identity::read(&paths)?;
    check_kind(dir, &identity, options)?;
    let sizes = sizes(&paths, options)?;
    let index_options = index_options(options, &sizes);
    let ballast = Arc::new(Ballast::new(paths.ballast(), 0, 0));
    let files = LogFiles::new(paths.log(), sizes.segment, Arc::clone(&ballast), None, options.sync_fault());
    let generations = Generations::read(&paths)?;
    let main_file = generations.dir().join(identity.index.main_file());
    if !main_file.exists() {
        return Err(OpenError::corrupt(main_file, FileCorruption::Missing));
    }
    check_index_is_free(&paths, &main_file)?;
    // The index has all names and small values, which only its owner may see.
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    let copy = tempfile::Builder::new().prefix("zarrd-index-").permissions(private).tempdir();
    let copy = copy.map_err(OpenError::io("create a directory in", std::env::temp_dir()))?;
    copy_dir(&generations.dir(), copy.path())?;
    let index = index_options.open(copy.path());
    let index: Arc<dyn Index> = Arc::from(index.map_err(|error| index_open_error(&paths, error))?);
    let (sweeps, replayed, epoch) = if identity.is_format_1() {
        let watermark = format_1::CommitWatermark::read(&paths)?;
        format_1::check_index(&paths, &*index, watermark)?;
        (Sweeps::default(), Memtable::default(), watermark.epoch)
    } else {
        let key = log_key(&identity);
        let replayed = replay(&paths.log(), key)?;
        let (meta, sweeps) = read_index(&paths, &*index)?;
        check_log_matches_index(&paths, &replayed, &meta)?;
        let last = replayed.next_group.saturating_sub(1);
        match clean_shutdown::read(&paths, &generations.dir(), replayed.epoch, last)? {
            CleanShutdown::Disagrees => super::check_entries(&paths, &*index, &meta, identity.id)?,
            CleanShutdown::Absent => super::warn_of_copy(&lock, &paths),
            CleanShutdown::Agrees => {}
        }
        (sweeps, replay_read_only(&files, key, &replayed, meta.applied)?, replayed.epoch)
    };
    let directory = Directory::open(&paths.values(), None).map_err(OpenError::io("open", paths.values()))?;
    Ok(OpenedReadOnly { lock, paths, identity, sizes, files, ballast, index, copy, sweeps, replayed, epoch, directory })
}

pub(super) fn copy_dir(from: &Path, to: &Path) -> Result<(), OpenError> {
    for entry in fs::read_dir(from).map_err(OpenError::io("list", from))? {
        let entry = entry.map_err(OpenError::io("list", from))?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(OpenError::io("inspect", &path))?;
        if kind.is_dir() {
            fs::create_dir(&copy).map_err(OpenError::io("create", &copy))?;
            copy_dir(&path, &copy)?;
        } else {
            fs::copy(&path, &copy).map_err(OpenError::io("copy", &path))?;
        }
    }
    Ok(())
}
