//! The file `incomplete`, which marks a store that is being filled.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::Path,
};

use crate::{OpenError, Purpose, StoreState, durable::sync_dir, paths::Paths};

/// Rejects a store that was not filled completely, unless that is to be resumed, and marks one that is to be filled,
/// durably. Called with the lock held, before a store is created.
pub(super) fn check_purpose(paths: &Paths, purpose: Purpose) -> Result<(), OpenError> {
    let mark = paths.incomplete_marker();
    let is_marked = mark.try_exists().map_err(OpenError::io("find", &mark))?;
    let dir = || paths.dir.clone();
    match purpose {
        Purpose::Resume(source) if is_marked => match read(&mark).map_err(OpenError::io("read", &mark))? {
            filled if filled == content(Some(source)) => Ok(()),
            _ => Err(OpenError::OtherSource { dir: dir() }),
        },
        Purpose::Use | Purpose::Fill(_) if is_marked => Err(OpenError::Incomplete { dir: dir() }),
        Purpose::Use => Ok(()),
        Purpose::Fill(_) | Purpose::Resume(_) if paths.identity().exists() => {
            Err(OpenError::AlreadyExists { dir: dir() })
        }
        Purpose::Fill(source) => create(paths, &mark, source),
        Purpose::Resume(source) => create(paths, &mark, Some(source)),
    }
}

fn create(paths: &Paths, mark: &Path, source: Option<StoreState>) -> Result<(), OpenError> {
    let write = |mut file: File| file.write_all(content(source).as_bytes()).and_then(|()| file.sync_all());
    File::create_new(mark).and_then(write).map_err(OpenError::io("create", mark))?;
    sync_dir(&paths.dir)
}

/// The marker's content, which names the source. A truncated file names no source.
fn content(source: Option<StoreState>) -> String {
    match source {
        Some(StoreState { store_id, commit }) => format!("store {store_id:016x} commit {commit:016x}\n"),
        None => String::new(),
    }
}

fn read(mark: &Path) -> io::Result<String> {
    let mut content = Vec::new();
    File::open(mark)?.take(64).read_to_end(&mut content)?;
    Ok(String::from_utf8_lossy(&content).into_owned())
}

/// Removes the marker, durably.
pub(super) fn remove(paths: &Paths) -> io::Result<()> {
    match fs::remove_file(paths.incomplete_marker()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::open(&paths.dir)?.sync_all(),
    }
}
