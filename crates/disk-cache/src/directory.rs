//! The directory of a cache: its lock, what is in it, and the space of its blocks.

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io::{self, Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::SystemTime,
};

use rustix::{
    fs::{FallocateFlags, FlockOperation, fallocate, flock, statvfs},
    io::Errno,
};

use crate::error::OpenError;

/// The file that makes a directory one of a cache, and that is locked.
const LOCK: &str = "zarrd-disk-cache";

/// The directory of the blocks.
const BLOCKS: &str = "blocks";

/// The first line of the lock's text, which is another one if the form of entries changes.
const FORM: &str = "the disk cache of a zarrd server, form 1";

/// The maximum length of the lock's text that is read, in bytes.
const MAX_TEXT: u64 = 256;

/// The start of the names of blocks, before eight digits.
const BLOCK: &str = "foyer-storage-direct-fs-";

/// The length of the start of a block, which says what is in it, in bytes. An empty block has zeros.
const PAGE: usize = 4096;

/// The permissions of the directories: other users must not read what the store's credentials give access to.
const OWNER_ONLY: u32 = 0o700;

/// A directory that this process uses, until dropped.
#[derive(Debug)]
pub(crate) struct Directory {
    /// The directory of the blocks.
    pub(crate) blocks: PathBuf,
    _lock: File,
}

impl Directory {
    /// Opens a directory, or creates it, locks it, and reserves the space of this number of blocks.
    pub(crate) fn open(path: &Path, blocks: u64, block_len: u64) -> Result<Self, OpenError> {
        create(path)?;
        check_content(path)?;
        let lock = take_lock(path)?;
        let failed = |action| failed(action, path);
        fs::set_permissions(path, Permissions::from_mode(OWNER_ONLY)).map_err(failed("set the permissions of"))?;
        let directory = Self { blocks: path.join(BLOCKS), _lock: lock };
        create(&directory.blocks)?;
        directory.prepare(path)?;
        directory.check_space(path, blocks, block_len)?;
        directory.reserve(path, blocks, block_len)?;
        directory.free_block()?;
        Ok(directory)
    }

    /// Empties the block that was written longest ago, unless one is empty: the engine makes one free while it writes
    /// another, and waits forever if it begins without any. It leaves none if the process ends in between.
    fn free_block(&self) -> Result<(), OpenError> {
        let mut oldest = None;
        for block in block_files(&self.blocks)? {
            let (is_empty, written) = examine(&block).map_err(failed("read", &block))?;
            if is_empty {
                return Ok(());
            }
            if oldest.as_ref().is_none_or(|(oldest, _)| written < *oldest) {
                oldest = Some((written, block));
            }
        }
        let Some((_, block)) = oldest else { return Ok(()) };
        let empty = || File::options().write(true).open(&block)?.write_all_at(&[0; PAGE], 0);
        empty().map_err(failed("write", &block))
    }

    /// Removes the blocks of another form, and writes this one.
    fn prepare(&self, path: &Path) -> Result<(), OpenError> {
        let lock = path.join(LOCK);
        let mut file = &self._lock;
        let mut text = String::new();
        // Text that cannot be read is of another form.
        let _ = file.take(MAX_TEXT).read_to_string(&mut text);
        if text.lines().next() != Some(FORM) {
            for block in block_files(&self.blocks)? {
                fs::remove_file(&block).map_err(failed("remove", &block))?;
            }
        }
        let text = format!("{FORM}\nprocess {}\n", std::process::id());
        let mut write = || {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(text.as_bytes())
        };
        write().map_err(|error| out_of_space(error, path, 0).unwrap_or_else(|error| failed("write", &lock)(error)))
    }

    /// Fails if the file system has no space for the blocks, before any of it is taken.
    fn check_space(&self, path: &Path, blocks: u64, block_len: u64) -> Result<(), OpenError> {
        let mut reserved: u64 = 0;
        for block in block_files(&self.blocks)? {
            let meta = fs::metadata(&block).map_err(failed("read", &block))?;
            reserved = reserved.saturating_add(meta.blocks().saturating_mul(512));
        }
        let space = statvfs(path).map_err(|error| failed("read the space of", path)(error.into()))?;
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        let size = blocks.saturating_mul(block_len);
        match size > reserved.saturating_add(free) {
            true => Err(OpenError::OutOfSpace { path: path.to_owned(), size }),
            false => Ok(()),
        }
    }

    /// Reserves the space of the blocks, and removes blocks beyond them.
    fn reserve(&self, path: &Path, blocks: u64, block_len: u64) -> Result<(), OpenError> {
        let wanted: Vec<_> = (0..blocks).map(|number| self.blocks.join(format!("{BLOCK}{number:08}"))).collect();
        for block in block_files(&self.blocks)? {
            if !wanted.contains(&block) {
                fs::remove_file(&block).map_err(failed("remove", &block))?;
            }
        }
        let mut created = Vec::new();
        for block in &wanted {
            if !block.exists() {
                created.push(block);
            }
            let Err(error) = reserve_block(block, block_len) else { continue };
            // The space that is there is not taken for a cache that cannot be used.
            for block in created {
                let _ = fs::remove_file(block);
            }
            let size = blocks.saturating_mul(block_len);
            return Err(out_of_space(error, path, size).unwrap_or_else(|error| failed("reserve", block)(error)));
        }
        Ok(())
    }
}

/// Creates a directory for its owner only, unless it exists.
fn create(path: &Path) -> Result<(), OpenError> {
    match DirBuilder::new().recursive(true).mode(OWNER_ONLY).create(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory) => {
            Err(OpenError::NotADirectory { path: path.to_owned() })
        }
        created => created.map_err(failed("create", path)),
    }
}

/// Fails if something in the directory is not of a cache.
fn check_content(path: &Path) -> Result<(), OpenError> {
    let names = names(path)?;
    let is_cache = names.iter().any(|name| name == LOCK);
    let foreign = |path: &Path, name: &str| OpenError::Foreign { path: path.to_owned(), name: name.to_owned() };
    if let Some(name) = names.iter().find(|name| *name != LOCK && !(is_cache && *name == BLOCKS)) {
        return Err(foreign(path, name));
    }
    let blocks = path.join(BLOCKS);
    if !names.iter().any(|name| name == BLOCKS) {
        return Ok(());
    }
    match self::names(&blocks)?.iter().find(|name| !is_block(name)) {
        Some(name) => Err(foreign(&blocks, name)),
        None => Ok(()),
    }
}

/// The names in a directory.
fn names(path: &Path) -> Result<Vec<String>, OpenError> {
    let list = || fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>();
    let names = list().map_err(failed("list", path))?;
    Ok(names.into_iter().map(|name| name.to_string_lossy().into_owned()).collect())
}

fn is_block(name: &str) -> bool {
    name.strip_prefix(BLOCK).is_some_and(|digits| digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn block_files(blocks: &Path) -> Result<Vec<PathBuf>, OpenError> {
    Ok(names(blocks)?.into_iter().filter(|name| is_block(name)).map(|name| blocks.join(name)).collect())
}

/// Locks the directory for this process.
fn take_lock(path: &Path) -> Result<File, OpenError> {
    let file = path.join(LOCK);
    let options = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).to_owned();
    let lock = options.open(&file).map_err(|error| {
        let error = out_of_space(error, path, 0);
        error.unwrap_or_else(|error| failed("open", &file)(error))
    })?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(Errno::WOULDBLOCK) => {
            let mut text = String::new();
            let _ = lock.take(MAX_TEXT).read_to_string(&mut text);
            let holder = text.lines().nth(1).map_or_else(String::new, |process| format!(", {process}"));
            Err(OpenError::InUse { path: path.to_owned(), holder })
        }
        Err(error) => Err(failed("lock", &file)(error.into())),
    }
}

/// Gives a file its length, and the space for it, where the file system can.
fn reserve_block(block: &Path, len: u64) -> io::Result<()> {
    let options = File::options().write(true).create(true).truncate(false).mode(0o600).to_owned();
    let file = options.open(block)?;
    file.set_len(len)?;
    match fallocate(&file, FallocateFlags::empty(), 0, len) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(()),
        reserved => reserved.map_err(Into::into),
    }
}

/// True if a block is empty, and the time at which it was last written.
fn examine(block: &Path) -> io::Result<(bool, SystemTime)> {
    let mut file = File::open(block)?;
    let mut first = [0; PAGE];
    file.read_exact(&mut first)?;
    Ok((first == [0; PAGE], file.metadata()?.modified()?))
}

fn failed<'p>(action: &'static str, path: &'p Path) -> impl Fn(io::Error) -> OpenError + use<'p> {
    move |source| OpenError::Io { action, path: path.to_owned(), source }
}

/// The error that the file system has no space, if that is the reason.
fn out_of_space(error: io::Error, path: &Path, size: u64) -> Result<OpenError, io::Error> {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Ok(OpenError::OutOfSpace { path: path.to_owned(), size })
        }
        _ => Err(error),
    }
}
