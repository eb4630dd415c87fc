//! The directory in which the value of a key is changed.

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, Gid, Mode, Uid, fchmod, fchown, fstat, mkdirat},
    io::Errno,
};
use zarrd_store::{Key, StoreError};

use super::{
    directories::{self, split},
    spelling,
};
use crate::{
    attributes::Kind,
    error::{Failure, change_error},
    faults::Call,
    inner::Inner,
    writer::{Durability, Writer},
};

/// The action that fails if directories cannot be made.
const MAKE: &str = "make the directory of a value";

/// The action that fails if directories cannot be opened.
const OPEN: &str = "open the directory of a value";

/// The number of times that directories are made again because another change removes them while they are empty.
pub(super) const TRIES: u32 = 64;

/// The bits of a mode that stay when permissions are given: directories pass on their group by one of them.
const SPECIAL_BITS: u32 = 0o7000;

/// The open directory of a key.
#[derive(Debug)]
pub(super) struct Parent {
    pub(super) file: OwnedFd,
    /// Its path, which is empty for the directory of the store.
    pub(super) path: String,
    /// The paths of directories that were made for it, outer ones first.
    made: Vec<String>,
}

impl Parent {
    /// Opens the directory of a key; `None` if there is none.
    pub(super) fn open(inner: &Inner, writer: &Writer, key: &Key) -> Result<Option<Self>, StoreError> {
        let (path, _) = split(key.as_str());
        match inner.root.open_unfollowed(&writer.folder, path) {
            Ok(file) => {
                check_spelling(inner, writer, key)?;
                Ok(Some(Self { file, path: path.to_owned(), made: Vec::new() }))
            }
            Err(Failure::File(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG)) => Ok(None),
            Err(failure) => Err(change_error(OPEN, key.as_str(), failure)),
        }
    }

    /// Opens the directory of a key, and makes those that are missing.
    pub(super) fn make(inner: &Inner, writer: &Writer, key: &Key) -> Result<Self, StoreError> {
        let failed = |failure| change_error(MAKE, key.as_str(), failure);
        let (path, _) = split(key.as_str());
        let mut made = Vec::new();
        let opened = match inner.root.open_unfollowed(&writer.folder, path) {
            Err(Failure::File(Errno::NOENT | Errno::NOTDIR)) => make_all(inner, writer, key, &mut made),
            opened => opened.map_err(failed),
        };
        match opened.and_then(|file| check_spelling(inner, writer, key).map(|()| file)) {
            Ok(file) => Ok(Self { file, path: path.to_owned(), made }),
            Err(error) => {
                remove_made(inner, writer, &made);
                Err(error)
            }
        }
    }

    /// Makes the names in the directory durable, and the directory itself with all above it.
    pub(super) fn sync(&self, inner: &Inner, writer: &Writer) -> Result<(), Failure> {
        if writer.options.durability == Durability::Unsynced {
            return Ok(());
        }
        directories::sync_open(inner, &self.file)?;
        directories::sync_path(inner, writer, &self.path)
    }

    /// Removes the directories that were made for a value which is not set, unless there is something in them.
    pub(super) fn remove_made(&self, inner: &Inner, writer: &Writer) {
        remove_made(inner, writer, &self.made);
    }
}

fn remove_made(inner: &Inner, writer: &Writer, made: &[String]) {
    for path in made.iter().rev() {
        if !directories::remove(inner, writer, path) {
            return;
        }
    }
}

/// Fails if the directories of a key are found by names that differ from theirs in case.
fn check_spelling(inner: &Inner, writer: &Writer, key: &Key) -> Result<(), StoreError> {
    let (path, _) = split(key.as_str());
    match spelling::other(inner, writer, path).map_err(|failure| change_error(OPEN, key.as_str(), failure))? {
        Some(existing) => Err(StoreError::NameConflict { key: key.clone(), existing: format!("{existing}/") }),
        None => Ok(()),
    }
}

/// Makes the missing directories of a key one by one, each in the open directory above it.
fn make_all(inner: &Inner, writer: &Writer, key: &Key, made: &mut Vec<String>) -> Result<OwnedFd, StoreError> {
    let failed = |failure| change_error(MAKE, key.as_str(), failure);
    let (path, _) = split(key.as_str());
    let ends = || path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
    'again: for _ in 0..TRIES {
        let mut current = inner.root.open_unfollowed(&writer.folder, "").map_err(failed)?;
        for part in ends().filter_map(|end| path.get(..end)) {
            let (_, name) = split(part);
            current = match make_one(inner, writer, &current, part, made) {
                Ok(directory) => directory,
                // Another change has removed it, since it was empty.
                Err(Failure::File(Errno::NOENT)) => continue 'again,
                Err(Failure::File(Errno::NOTDIR)) => {
                    let found = inner.root.attributes_unfollowed(&current, name, AtFlags::empty());
                    return Err(match found.map(|found| found.kind) {
                        Ok(Kind::Regular) => StoreError::NameConflict { key: key.clone(), existing: part.to_owned() },
                        Ok(Kind::Symlink) => failed(Failure::LinkOnTheWay),
                        _ => failed(Failure::Special),
                    });
                }
                Err(failure) => return Err(failed(failure)),
            };
        }
        return Ok(current);
    }
    Err(failed(Errno::AGAIN.into()))
}

/// Opens a directory in another one, and makes it if it is missing.
fn make_one(
    inner: &Inner,
    writer: &Writer,
    above: &OwnedFd,
    path: &str,
    made: &mut Vec<String>,
) -> Result<OwnedFd, Failure> {
    let (_, name) = split(path);
    match inner.root.open_unfollowed_in(above, name) {
        Err(Failure::File(Errno::NOENT)) => {}
        opened => return opened,
    }
    inner.root.faults.call(Call::MakeDirectory)?;
    writer.durable.remove(path);
    match mkdirat(above, name, Mode::from_raw_mode(0o777)) {
        Ok(()) => {
            made.push(path.to_owned());
            let directory = inner.root.open_unfollowed_in(above, name)?;
            set_owner(inner, writer, &directory, writer.options.mode.map(|mode| mode.of_directory()))?;
            Ok(directory)
        }
        Err(Errno::EXIST) => inner.root.open_unfollowed_in(above, name),
        Err(error) => Err(error.into()),
    }
}

/// Gives a new file or directory the owner, the group and a mode that the options have.
pub(super) fn set_owner(inner: &Inner, writer: &Writer, file: &OwnedFd, mode: Option<Mode>) -> Result<(), Failure> {
    let (owner, group) = (writer.options.owner, writer.options.group);
    if owner.is_none() && group.is_none() && mode.is_none() {
        return Ok(());
    }
    inner.root.faults.call(Call::SetAttributes)?;
    if owner.is_some() || group.is_some() {
        fchown(file, owner.map(Uid::from_raw), group.map(Gid::from_raw))?;
    }
    if let Some(mode) = mode {
        let special = fstat(file)?.st_mode & SPECIAL_BITS;
        fchmod(file, Mode::from_raw_mode(special | mode.as_raw_mode()))?;
    }
    Ok(())
}
