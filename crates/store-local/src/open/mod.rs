//! Opening and closing a store.
//!
//! A start locks the directory, checks the index against the seal of the last stop or, after a crash, entry by
//! entry, compares it with the progress, and only then begins a new epoch. Whatever is refused is left untouched.

mod collect;
mod identity;
mod lock;
mod seal;

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
};

pub(crate) use self::{identity::Identity, lock::Lock};
use crate::{
    Damage, OpenError, Options,
    index::{self, Index, IndexError, Meta, Step, fingerprint},
    progress::{Mark, Progress},
    record::{FileId, Record},
    values::Directory,
};

/// Where the parts of a store are.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    pub(crate) dir: PathBuf,
}

/// A store's parts, checked and of a new epoch.
pub(crate) struct Opened {
    pub(crate) lock: Lock,
    pub(crate) paths: Paths,
    pub(crate) identity: Identity,
    pub(crate) index: Arc<dyn Index>,
    pub(crate) meta: Meta,
    pub(crate) progress: Progress,
    pub(crate) epoch: u64,
    pub(crate) directory: Directory,
    /// After a crash: the value files that the index refers to, sorted.
    pub(crate) referenced: Option<Vec<FileId>>,
}

impl Paths {
    pub(crate) fn identity(&self) -> PathBuf {
        self.dir.join("zarrd.json")
    }

    fn lock(&self) -> PathBuf {
        self.dir.join("lock")
    }

    /// Stands for a store that is being made and has acknowledged nothing.
    fn making(&self) -> PathBuf {
        self.dir.join("making")
    }

    fn progress(&self) -> PathBuf {
        self.dir.join("progress")
    }

    pub(crate) fn seal(&self) -> PathBuf {
        self.dir.join("seal")
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.dir.join("index")
    }

    pub(crate) fn values(&self) -> PathBuf {
        self.dir.join("values")
    }

    pub(crate) fn lost_and_found(&self) -> PathBuf {
        self.dir.join("lost+found")
    }
}

/// Opens a store, making it where the directory is missing or empty. Blocks.
pub(crate) fn open(dir: &Path, options: &Options) -> Result<Opened, OpenError> {
    let paths = Paths { dir: dir.to_owned() };
    fs::create_dir_all(dir).map_err(OpenError::io("make", dir))?;
    if !paths.identity().exists() {
        refuse_foreign_files(&paths)?;
    }
    let lock = Lock::take(dir, &paths.lock())?;
    if !paths.identity().exists() {
        make(&paths, options)?;
    }
    let identity = Identity::read(&paths)?;
    if identity.index != options.index {
        return Err(OpenError::OtherIndex { dir: dir.to_owned(), found: identity.index, asked: options.index });
    }
    let mark = read_progress(&paths)?;
    let sealed = seal::verify(&paths, mark.commit)?;
    if !paths.index().join(identity.index.main_file()).exists() {
        return Err(damaged(paths.index().join(identity.index.main_file()), Damage::Missing));
    }
    let opened = index::open(identity.index, &paths.index(), options.cache_bytes);
    let index: Arc<dyn Index> = Arc::from(opened.map_err(|error| index_damage(&paths, error))?);
    let meta = index.meta().map_err(|error| index_damage(&paths, error))?.unwrap_or_default();
    if meta.commit < mark.commit {
        return Err(OpenError::Behind { file: paths.index(), found: meta.commit, expected: mark.commit });
    }
    let referenced = match sealed {
        seal::Sealed::Yes => None,
        seal::Sealed::No => Some(verify_entries(&paths, &*index, meta, identity.id)?),
    };
    seal::remove(&paths)?;
    let epoch = mark.epoch.saturating_add(1);
    let progress = Progress::begin(&paths.progress(), Mark { epoch, commit: meta.commit })
        .map_err(OpenError::io("write", paths.progress()))?;
    let directory = Directory::open(&paths.values()).map_err(OpenError::io("open", paths.values()))?;
    // Commits are numbered from the epoch's first on, so that none that was lost before is numbered again.
    let meta = Meta { commit: meta.commit.max(FileId::first_of(epoch)), ..meta };
    Ok(Opened { lock, paths, identity, index, meta, progress, epoch, directory, referenced })
}

/// Seals a store whose index has been closed. Blocks.
pub(crate) fn seal(paths: &Paths, commit: u64) -> std::io::Result<()> {
    seal::write(paths, commit)
}

/// Moves files that nothing refers to out of the way, on a thread of its own.
pub(crate) fn collect_in_background(opened: &mut Opened) {
    let Some(referenced) = opened.referenced.take() else { return };
    let (paths, directory, epoch) = (opened.paths.clone(), opened.directory.clone(), opened.epoch);
    let work = move || {
        if let Err(error) = collect::collect(&paths, &directory, &referenced, epoch) {
            tracing::warn!(%error, "could not collect the value files that nothing refers to");
        }
    };
    if let Err(error) = std::thread::Builder::new().name("zarrd-collector".into()).spawn(work) {
        tracing::warn!(%error, "could not start the collector");
    }
}

fn refuse_foreign_files(paths: &Paths) -> Result<(), OpenError> {
    let entries = fs::read_dir(&paths.dir).map_err(OpenError::io("list", &paths.dir))?;
    let ours = |name: &std::ffi::OsStr| name == "lock" || name == "lost+found";
    let foreign = entries.flatten().any(|entry| !ours(&entry.file_name()));
    if foreign && !paths.making().exists() {
        return Err(OpenError::NotAStore { dir: paths.dir.clone() });
    }
    Ok(())
}

/// Makes a store. Its identity is written last; until then the file `making` says that there is nothing to lose.
fn make(paths: &Paths, options: &Options) -> Result<(), OpenError> {
    let io = |action, path: &Path| OpenError::io(action, path.to_owned());
    File::create(paths.making()).map_err(io("make", &paths.making()))?;
    sync_dir(&paths.dir)?;
    if paths.index().exists() {
        fs::remove_dir_all(paths.index()).map_err(io("empty", &paths.index()))?;
    }
    Directory::create(&paths.values()).map_err(io("make", &paths.values()))?;
    fs::create_dir_all(paths.lost_and_found()).map_err(io("make", &paths.lost_and_found()))?;
    Progress::create(&paths.progress()).map_err(io("make", &paths.progress()))?;
    fs::create_dir_all(paths.index()).map_err(io("make", &paths.index()))?;
    let index = index::open(options.index, &paths.index(), options.cache_bytes);
    drop(index.map_err(|error| index_damage(paths, error))?);
    sync_dir(&paths.index())?;
    Identity::new(options.index).write(paths)?;
    fs::remove_file(paths.making()).map_err(io("remove", &paths.making()))?;
    sync_dir(&paths.dir)?;
    // The store's own entry, and those of the directories above it that were made with it.
    for above in paths.dir.ancestors().skip(1).take(2).filter(|above| !above.as_os_str().is_empty()) {
        sync_dir(above)?;
    }
    Ok(())
}

fn read_progress(paths: &Paths) -> Result<Mark, OpenError> {
    match Progress::read(&paths.progress()) {
        Ok(Some(mark)) => Ok(mark),
        Ok(None) => Err(damaged(paths.progress(), Damage::Content)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(damaged(paths.progress(), Damage::Missing)),
        Err(error) => Err(OpenError::io("read", paths.progress())(error)),
    }
}

/// Reads every entry of the index and compares them, all together, with what the index says of itself. Gives the value
/// files that they refer to.
fn verify_entries(paths: &Paths, index: &dyn Index, meta: Meta, store_id: u64) -> Result<Vec<FileId>, OpenError> {
    let (mut keys, mut digest) = (0_u64, 0);
    let mut files = Vec::new();
    let mut bad = None;
    let scan = index.scan(b"", &mut |key, bytes| {
        keys = keys.saturating_add(1);
        digest ^= fingerprint(key, &bytes);
        match Record::decode(key, bytes, store_id) {
            Some(record) => files.extend(record.file().map(|file| file.id)),
            None => {
                bad = Some(String::from_utf8_lossy(key).into_owned());
                return Step::Stop;
            }
        }
        Step::Next
    });
    scan.map_err(|error| index_damage(paths, error))?;
    if let Some(key) = bad {
        return Err(damaged(paths.index(), Damage::Record { key }));
    }
    if keys != meta.keys || digest != meta.digest {
        return Err(damaged(paths.index(), Damage::Keys { found: keys, expected: meta.keys }));
    }
    files.sort_unstable();
    Ok(files)
}

fn sync_dir(dir: &Path) -> Result<(), OpenError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(OpenError::io("sync", dir))
}

fn damaged(file: PathBuf, cause: Damage) -> OpenError {
    OpenError::Damaged { file, cause }
}

fn index_damage(paths: &Paths, error: IndexError) -> OpenError {
    match error {
        IndexError::Sync(source) => OpenError::Io { action: "write", path: paths.index(), source },
        error => damaged(paths.index(), Damage::Index(Box::new(error))),
    }
}
