//! Opening a store.
//!
//! Opening locks the directory, reads the log, removes the clean-shutdown marker, opens the index, and loads the
//! commits that the index does not have into a memtable. After a crash, a signal or a full disk this always succeeds,
//! with all acknowledged commits. A store that something else has changed is rejected and left unchanged.

mod create;
mod format_1;
mod identity;
mod incomplete;
mod index_copy;
mod read_only;
mod rebuild;
mod replayed;

use std::{
    fs::{self, File},
    io,
    path::Path,
    sync::Arc,
};

use self::replayed::replay_into;
pub(crate) use self::{
    identity::{FORMAT_WITH_ATTRIBUTES, FORMAT_WITH_JOINED_VALUES, Identity},
    index_copy::IndexCopy,
    read_only::{OpenedReadOnly, open_read_only},
};
use crate::{
    FileCorruption, OpenError, Options,
    checkpoint::{CHECKED_COPY, Generations, Verification},
    clean_shutdown::{self, CleanShutdown},
    damage::KnownDamage,
    index::{Index, IndexError, IndexOptions, is_in_use},
    index_pages,
    keyspace::{Meta, Sweeps},
    lock::{Lock, Origin},
    log::{Log, LogFiles, LogStart, Replayed, replay},
    log_key::LogKey,
    orphans,
    paths::Paths,
    space::{Ballast, Sizes, Space},
    values::Directory,
    view::Memtable,
};

/// The parts of a store that was opened for writing, in a new epoch.
pub(crate) struct Opened {
    pub(crate) paths: Paths,
    pub(crate) identity: Identity,
    pub(crate) sizes: Sizes,
    pub(crate) index_options: IndexOptions,
    pub(crate) ballast: Arc<Ballast>,
    pub(crate) log: Log,
    pub(crate) files: Arc<LogFiles>,
    pub(crate) index: Arc<dyn Index>,
    pub(crate) meta: Meta,
    pub(crate) sweeps: Sweeps,
    pub(crate) damage: KnownDamage,
    pub(crate) generations: Generations,
    /// The commit groups that are not yet in the index.
    pub(crate) replayed: Memtable,
    pub(crate) epoch: u64,
    pub(crate) directory: Directory,
    /// True if all entries of the index have to be verified.
    pub(crate) verify: bool,
}

/// Opens a store, creating it if the directory is missing or empty. Blocks.
pub(crate) fn open(dir: &Path, options: &Options) -> Result<(Lock, Opened), OpenError> {
    fs::create_dir_all(dir).map_err(OpenError::io("create", dir))?;
    let paths = Paths::open(dir).map_err(OpenError::io("open", dir))?;
    open_or_create(&paths, options).map_err(|error| error.map_paths(|path| paths.shown(path)))
}

fn open_or_create(paths: &Paths, options: &Options) -> Result<(Lock, Opened), OpenError> {
    if !paths.identity().exists() {
        reject_foreign_files(paths)?;
    }
    let lock = Lock::take(paths)?;
    let sizes = sizes(paths, options)?;
    let index_options = index_options(options, &sizes);
    let ballast = Arc::new(Ballast::new(paths.ballast(), sizes.ballast, sizes.open_reserve));
    incomplete::check_purpose(paths, options.purpose)?;
    if !paths.identity().exists() {
        create::create(paths, index_options, &log_files(&lock, paths, sizes, &ballast, options))?;
    }
    ballast.free_open_space();
    // Quotas are not part of the free space of the file system, and neither is what it needs to overwrite files.
    let open = || open_locked(&lock, paths, options, sizes, &ballast);
    let opened = ballast.retry_opening(OpenError::is_out_of_space, open)?;
    orphans::report_earlier(paths);
    if opened.verify {
        warn_of_copy(&lock, paths);
    }
    Ok((lock, opened))
}

/// Warns if a store that was not closed is a copy of another one: its files were copied while that was in use.
fn warn_of_copy(lock: &Lock, paths: &Paths) {
    if lock.origin() == Origin::Copied {
        tracing::warn!(
            dir = %paths.given().display(),
            "this is a copy of a store that was in use when its files were copied: values may be missing or older than \
             others, which zarrd check finds; copy a store with zarrd copy, or with a snapshot of the file system"
        );
    }
}

/// Opens a store that exists and is locked. If no space is left, this can be repeated.
fn open_locked(
    lock: &Lock,
    paths: &Paths,
    options: &Options,
    sizes: Sizes,
    ballast: &Arc<Ballast>,
) -> Result<Opened, OpenError> {
    let index_options = index_options(options, &sizes);
    let files = log_files(lock, paths, sizes, ballast, options);
    let mut identity = Identity::read(paths)?;
    check_kind(&paths.dir, &identity, options)?;
    if identity.is_format_1() {
        identity = format_1::upgrade(paths, identity, index_options, Arc::clone(&files))?;
    }
    let key = log_key(&identity);
    let replayed = replay(&paths.log(), key)?;
    let mut generations = Generations::read(paths)?;
    let clean = clean_shutdown::read(paths, &generations.dir(), replayed.epoch, replayed.next_group.saturating_sub(1))?;
    let main_file = generations.dir().join(identity.index.main_file());
    if !main_file.exists() {
        return Err(OpenError::corrupt(main_file, FileCorruption::Missing));
    }
    let found = FoundIndex { paths, identity: &identity, replayed: &replayed, options: index_options };
    let OpenedIndex { index, meta, sweeps, damage } = found.open(&mut generations, clean)?;
    check_log_matches_index(paths, &replayed, &meta)?;
    let epoch = replayed.epoch.saturating_add(1);
    let last = replayed.last;
    crate::log::replay::rewrite_tail(files.dir(), last).map_err(OpenError::io("write", files.dir()))?;
    let next_group = replayed.next_group;
    let memtable = replay_into(&files, key, replayed, meta.applied)?;
    let start = LogStart { key, epoch, next_group, last: Some(last) };
    let log = Log::create(Arc::clone(&files), start).map_err(OpenError::io("write", files.dir()))?;
    // Everything opened is durable, so a store that is repeatedly opened and closed does not accumulate segments.
    if let Err(error) = files.retire(meta.applied) {
        tracing::warn!(%error, "could not retire an applied part of the log");
    }
    if let Err(error) = generations.remove_others() {
        tracing::warn!(%error, "could not remove old generations of the index");
    }
    let directory =
        Directory::open(&paths.values(), lock.place().cloned()).map_err(OpenError::io("open", paths.values()))?;
    ballast.restore_open_reserve();
    let verify = clean == CleanShutdown::Absent;
    Ok(Opened {
        paths: paths.clone(),
        identity,
        sizes,
        index_options,
        ballast: Arc::clone(ballast),
        log,
        files,
        index,
        meta,
        sweeps,
        damage,
        generations,
        replayed: memtable,
        epoch,
        directory,
        verify,
    })
}

fn log_files(lock: &Lock, paths: &Paths, sizes: Sizes, ballast: &Arc<Ballast>, options: &Options) -> Arc<LogFiles> {
    let place = lock.place().cloned();
    LogFiles::new(paths.log(), sizes.segment, Arc::clone(ballast), place, options.sync_fault())
}

/// Marks a store as filled completely. Blocks.
pub(crate) fn complete(paths: &Paths) -> io::Result<()> {
    incomplete::remove(paths)
}

fn sizes(paths: &Paths, options: &Options) -> Result<Sizes, OpenError> {
    let space = File::open(&paths.dir).and_then(|dir| Space::of(&dir));
    Ok(Sizes::new(space.map_err(OpenError::io("inspect", &paths.dir))?.total, options))
}

/// Rejects a store whose index another process has open. The lock of the store excludes that, unless its file was removed.
fn check_index_is_free(paths: &Paths, main_file: &Path) -> Result<(), OpenError> {
    if is_in_use(main_file) { Err(OpenError::Locked { dir: paths.dir.clone(), pid: None }) } else { Ok(()) }
}

fn index_options(options: &Options, sizes: &Sizes) -> IndexOptions {
    IndexOptions { kind: options.index, cache_bytes: options.cache_bytes, segment_bytes: sizes.index_segment }
}

fn check_kind(dir: &Path, identity: &Identity, options: &Options) -> Result<(), OpenError> {
    if identity.index == options.index {
        return Ok(());
    }
    Err(OpenError::IndexMismatch { dir: dir.to_owned(), found: identity.index, requested: options.index })
}

fn log_key(identity: &Identity) -> LogKey {
    LogKey::new(identity.id, identity.secret)
}

/// The index of a store that is opened for writing, and what it has to fit to.
struct FoundIndex<'f> {
    paths: &'f Paths,
    identity: &'f Identity,
    replayed: &'f Replayed,
    options: IndexOptions,
}

impl FoundIndex<'_> {
    /// Opens the current generation. A damaged one is replaced, as far as its damage has bounds.
    fn open(&self, generations: &mut Generations, clean: CleanShutdown) -> Result<OpenedIndex, OpenError> {
        let Self { paths, identity, replayed, options } = *self;
        let mut damage = None;
        if clean == CleanShutdown::Disagrees {
            match check_copy(paths, identity, &generations.dir(), replayed, options) {
                Err(error) if rebuild::is_damaged_index(paths, &error) => damage = Some(error),
                checked => checked?,
            }
        }
        check_index_is_free(paths, &generations.dir().join(identity.index.main_file()))?;
        if let Some(error) = damage {
            rebuild::replace_index(paths, identity, generations, replayed, options, error)?;
        }
        // Files are changed from here on.
        clean_shutdown::remove(paths)?;
        identity.write_copy(paths);
        match open_index_after(clean, paths, &generations.dir(), options) {
            Err(error) if rebuild::is_damaged_index(paths, &error) => {
                rebuild::replace_index(paths, identity, generations, replayed, options, error)?;
                open_index(paths, &generations.dir(), options)
            }
            opened => opened,
        }
    }
}

/// An index with its internal entries.
struct OpenedIndex {
    index: Arc<dyn Index>,
    meta: Meta,
    sweeps: Sweeps,
    damage: KnownDamage,
}

/// Opens the index in a directory, and reads its internal entries. The metadata of an index of format 1, or of an empty one,
/// is computed.
fn open_index(paths: &Paths, dir: &Path, options: IndexOptions) -> Result<OpenedIndex, OpenError> {
    let open = || {
        let index: Arc<dyn Index> = Arc::from(options.open(dir)?);
        let meta = match Meta::read(&*index)? {
            Some(meta) => meta,
            None => Meta::recount(&*index)?,
        };
        let (sweeps, damage) = (Sweeps::read(&*index)?, KnownDamage::read(&*index)?);
        Ok(OpenedIndex { index, meta, sweeps, damage })
    };
    open().map_err(|error| index_open_error(paths, error))
}

/// Opens the index of a store that was left in a certain way. After a crash its pages are checked before any change is
/// applied: a change below a damaged page would give new checksums to what is not current.
fn open_index_after(
    clean: CleanShutdown,
    paths: &Paths,
    dir: &Path,
    options: IndexOptions,
) -> Result<OpenedIndex, OpenError> {
    let opened = open_index(paths, dir, options)?;
    // The index's library has taken back a commit that was not complete.
    let is_whole = clean != CleanShutdown::Absent
        || index_pages::is_whole(dir, options.kind).map_err(OpenError::io("read", dir))?;
    if is_whole { Ok(opened) } else { Err(OpenError::corrupt(paths.index(), FileCorruption::ContentMismatch)) }
}

/// Rejects an index and a log with a gap between them.
fn check_log_matches_index(paths: &Paths, replayed: &Replayed, meta: &Meta) -> Result<(), OpenError> {
    let (first, last) = (replayed.first_group, replayed.next_group.saturating_sub(1));
    if meta.applied.saturating_add(1) < first {
        return Err(OpenError::StaleIndex {
            file: paths.index(),
            found: meta.applied,
            expected: first.saturating_sub(1),
        });
    }
    if meta.applied > last {
        return Err(OpenError::StaleIndex { file: paths.log(), found: last, expected: meta.applied });
    }
    Ok(())
}

/// Checks an index that something else has changed, on a copy, so that a rejected one is unchanged.
fn check_copy(
    paths: &Paths,
    identity: &Identity,
    index_dir: &Path,
    replayed: &Replayed,
    index_options: IndexOptions,
) -> Result<(), OpenError> {
    let copy = tempfile::Builder::new().prefix(CHECKED_COPY).tempdir_in(&paths.dir);
    let copy = copy.map_err(OpenError::io("create a directory in", &paths.dir))?;
    read_only::copy_dir(index_dir, copy.path())?;
    let OpenedIndex { index, meta, .. } = open_index(paths, copy.path(), index_options)?;
    check_log_matches_index(paths, replayed, &meta)?;
    check_entries(paths, &*index, &meta, identity.id)?;
    check_is_last_state(paths, identity, index_dir, &meta)
}

/// Rejects an index that its library opens in an earlier state than the store was closed in, if the last one can be rebuilt.
fn check_is_last_state(paths: &Paths, identity: &Identity, index: &Path, meta: &Meta) -> Result<(), OpenError> {
    let last = clean_shutdown::read_state(paths).map(|(_, applied)| applied).filter(|last| *last > meta.applied);
    let Some(last) = last else { return Ok(()) };
    match index_pages::rebuild(index, identity.index, identity.id) {
        Some(rebuilt) if rebuilt.applied == last => {
            Err(OpenError::corrupt(paths.index(), FileCorruption::ContentMismatch))
        }
        _ => Ok(()),
    }
}

/// Reads all entries of the index and compares them with its metadata.
fn check_entries(paths: &Paths, index: &dyn Index, meta: &Meta, store_id: u64) -> Result<(), OpenError> {
    tracing::warn!("the index was changed after the store was closed; checking all of its entries");
    let mut verification = Verification::default();
    while !verification.step(index, store_id).map_err(|error| index_open_error(paths, error))? {}
    if verification.agrees_with(meta) {
        return Ok(());
    }
    Err(OpenError::corrupt(
        paths.index(),
        FileCorruption::KeyCountMismatch { found: verification.entries(), expected: meta.entries },
    ))
}

fn reject_foreign_files(paths: &Paths) -> Result<(), OpenError> {
    let entries = fs::read_dir(&paths.dir).map_err(OpenError::io("list", &paths.dir))?;
    // `access` is the default place of zarrd's tokens, which may be made before the store; `lost+found` is in the root
    // of a file system.
    let recognized =
        |name: &std::ffi::OsStr| ["lock", "lost+found", "incomplete", "access"].iter().any(|known| name == *known);
    let foreign = entries.flatten().any(|entry| !recognized(&entry.file_name()));
    if foreign && !paths.creation_marker().exists() {
        return Err(OpenError::NotAStore { dir: paths.dir.clone() });
    }
    Ok(())
}

/// True if the operating system failed, rather than the content of a file being invalid. sled copies kinds and texts of
/// errors, so the error number may be missing.
fn is_system_error(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    error.raw_os_error().is_some() || !matches!(error.kind(), InvalidData | InvalidInput | Other | UnexpectedEof)
}

/// The error of an index that does not open: the operating system failed, or the index is damaged.
fn index_open_error(paths: &Paths, error: IndexError) -> OpenError {
    match error.io() {
        Some(source) if is_system_error(source) => {
            let source = io::Error::new(source.kind(), source.to_string());
            OpenError::Io { action: "open", path: paths.index(), source }
        }
        _ => OpenError::corrupt(paths.index(), FileCorruption::Index(Box::new(error))),
    }
}
