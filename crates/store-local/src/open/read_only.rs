//! Opening a store without writing into its directory.

use std::{fs, path::Path, sync::Arc};

use super::{
    Identity, OpenedIndex, check_entries, check_index_is_free, check_is_last_state, check_kind,
    check_log_matches_index, format_1, incomplete,
    index_copy::IndexCopy,
    index_options, log_key, open_index, open_index_after,
    rebuild::{copy_index, is_damaged_index},
    replayed::replay_read_only,
    sizes,
};
use crate::{
    FileCorruption, OpenError, Options, Purpose,
    checkpoint::Generations,
    clean_shutdown::{self, CleanShutdown},
    damage::KnownDamage,
    index::{Index, IndexOptions},
    keyspace::Sweeps,
    lock::Lock,
    log::{LogFiles, Replayed, replay},
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
    /// The copy of the index that is read.
    pub(crate) copy: IndexCopy,
    pub(crate) sweeps: Sweeps,
    pub(crate) damage: KnownDamage,
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
    let copy = IndexCopy::create()?;
    let copied = copy_dir(&generations.dir(), copy.path());
    let (opened, replayed, epoch) = if identity.is_format_1() {
        copied?;
        let opened = open_index(&paths, copy.path(), index_options)?;
        let watermark = format_1::CommitWatermark::read(&paths)?;
        format_1::check_index(&paths, &*opened.index, watermark)?;
        (opened, Memtable::default(), watermark.epoch)
    } else {
        let key = log_key(&identity);
        let replayed = replay(&paths.log(), key)?;
        let last = replayed.next_group.saturating_sub(1);
        let clean = clean_shutdown::read(&paths, &generations.dir(), replayed.epoch, last)?;
        if clean == CleanShutdown::Absent {
            super::warn_of_copy(&lock, &paths);
        }
        let index_dir = generations.dir();
        let places = (&*index_dir, copy.path());
        let opened = open_or_rebuild(&paths, &identity, places, &replayed, index_options, (clean, copied))?;
        let memtable = replay_read_only(&files, key, &replayed, opened.meta.applied)?;
        (opened, memtable, replayed.epoch)
    };
    let OpenedIndex { index, sweeps, damage, .. } = opened;
    let directory = Directory::open(&paths.values(), None).map_err(OpenError::io("open", paths.values()))?;
    Ok(OpenedReadOnly {
        lock,
        paths,
        identity,
        sizes,
        files,
        ballast,
        index,
        copy,
        sweeps,
        damage,
        replayed,
        epoch,
        directory,
    })
}

/// Opens a copy of the index. If that is damaged, another one is made of what is whole.
fn open_or_rebuild(
    paths: &Paths,
    identity: &Identity,
    (index, copy): (&Path, &Path),
    replayed: &Replayed,
    options: IndexOptions,
    (clean, copied): (CleanShutdown, Result<(), OpenError>),
) -> Result<OpenedIndex, OpenError> {
    match copied.and_then(|()| open_checked(paths, identity, (index, copy), replayed, options, clean)) {
        Err(error) if is_damaged_index(paths, &error) => {
            let rebuilt = copy.join("rebuilt");
            copy_index(paths, identity, (index, &rebuilt), replayed, options, error)?;
            open_index(paths, &rebuilt, options)
        }
        opened => opened,
    }
}

/// Opens a copy of the index, and checks it as far as `clean` asks for that.
fn open_checked(
    paths: &Paths,
    identity: &Identity,
    (index, copy): (&Path, &Path),
    replayed: &Replayed,
    options: IndexOptions,
    clean: CleanShutdown,
) -> Result<OpenedIndex, OpenError> {
    let opened = open_index_after(clean, paths, copy, options)?;
    check_log_matches_index(paths, replayed, &opened.meta)?;
    if clean == CleanShutdown::Disagrees {
        check_entries(paths, &*opened.index, &opened.meta, identity.id)?;
        check_is_last_state(paths, identity, index, &opened.meta)?;
    }
    Ok(opened)
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
