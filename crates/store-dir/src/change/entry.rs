//! The state of a name before it is changed.

use rustix::io::Errno;
use zarrd_store::{Key, Precondition, StoreError, Version, VersionMatch};

use super::{directories::split, parent::Parent, spelling};
use crate::{
    attributes::{Kind, Versions},
    error::{Failure, change_error},
    inner::Inner,
    read,
    writer::Writer,
};

/// The action that fails if the attributes of a file cannot be read.
const ACTION: &str = "read the attributes of a value";

/// The state of the name of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Absent,
    /// A directory, or a link to one: the key is a prefix of others.
    Directory,
    /// A value of this version.
    Value(Version),
}

impl Entry {
    /// The version of the value, if there is one.
    pub(super) fn version(self) -> Option<Version> {
        match self {
            Self::Value(version) => Some(version),
            Self::Absent | Self::Directory => None,
        }
    }
}

/// Fails if a precondition does not hold for the state of a key.
pub(super) fn check(precondition: &Precondition, key: &Key, entry: Entry) -> Result<(), StoreError> {
    precondition.check(key, entry.version())
}

/// The version of a key for a precondition that names versions, once its file is quiet; `None` for any other, which need
/// not wait for it.
pub(super) async fn settled(
    inner: &std::sync::Arc<Inner>,
    key: &Key,
    precondition: &Precondition,
) -> Result<Option<Version>, StoreError> {
    let names_versions = |condition: &Option<VersionMatch>| matches!(condition, Some(VersionMatch::OneOf(_)));
    if !names_versions(&precondition.if_match) && !names_versions(&precondition.if_none_match) {
        return Ok(None);
    }
    Ok(read::head(inner, key).await?.map(|meta| meta.version))
}

/// Reads what has the name of a key. A file that may still be written by another program has a version of its own, unless
/// it was quiet at the version `settled`.
pub(super) fn read_entry(
    inner: &Inner,
    writer: &Writer,
    (key, parent): (&Key, &Parent),
    settled: Option<Version>,
) -> Result<Entry, StoreError> {
    let failed = |failure| change_error(ACTION, key.as_str(), failure);
    let (_, name) = split(key.as_str());
    let flags = writer.folder.precision.current();
    let attributes = match inner.root.attributes_unfollowed(&parent.file, name, flags) {
        Ok(attributes) => attributes,
        Err(Failure::File(Errno::NOENT)) => return Ok(Entry::Absent),
        Err(failure) => return Err(failed(failure)),
    };
    if let Some(other) = spelling::other_name(inner, &parent.file, name).map_err(failed)? {
        let existing = format!("{}{other}", key.parent());
        return Err(StoreError::NameConflict { key: key.clone(), existing });
    }
    let (attributes, precision) = match attributes.kind {
        Kind::Directory => return Ok(Entry::Directory),
        Kind::Special => return Err(failed(Failure::Special)),
        Kind::Regular => (attributes, inner.root.file_systems.precision(attributes.id, &parent.file)),
        // Its value is in the file to which it leads, and a change replaces the link.
        Kind::Symlink => match inner.root.look_up(key.as_str(), crate::root::Wait::Allowed).map_err(failed)? {
            None => return Ok(Entry::Absent),
            Some(found) if !found.attributes.is_value().map_err(failed)? => return Ok(Entry::Directory),
            Some(found) => (found.attributes, found.precision),
        },
    };
    let version = inner.meta(key, &attributes).version;
    let is_settled = settled == Some(version) || inner.wait(key, &attributes, precision).is_none();
    Ok(Entry::Value(if is_settled { version } else { Versions::unsettled_meta(&attributes).version }))
}
