//! Joining value files.

use std::io;

use zarrd_store::{Key, StoreError};

use super::{
    Directory,
    joined::{self, PartFile},
    writer::{FinishError, StagedFile, Writer},
};
use crate::{error::missing_file, gc::GarbageCollector, record::FileId};

/// Errors of joining value files.
pub(crate) enum JoinError {
    /// The file system has no further hard link.
    NoLinks,
    Finish(FinishError),
}

impl From<FinishError> for JoinError {
    fn from(error: FinishError) -> Self {
        Self::Finish(error)
    }
}

impl From<StoreError> for JoinError {
    fn from(error: StoreError) -> Self {
        Self::Finish(FinishError::Store(error))
    }
}

/// Joins durable files to one value, which is durable except for its directory entry. Blocks.
pub(crate) fn join(
    directory: &Directory,
    id: FileId,
    key: &Key,
    parts: &[PartFile],
    commit: u64,
    collector: GarbageCollector,
) -> Result<StagedFile, JoinError> {
    let mut writer = Writer::create_list(directory, id, collector)?;
    for (index, part) in parts.iter().enumerate() {
        directory.link_part(part.file.id, id, index).map_err(|error| link_error(part, error))?;
    }
    writer.write(&joined::encode(parts))?;
    let list = writer.finish(key, commit)?;
    let opened =
        directory.open_file(&id.path()).map_err(|error| StoreError::io("open the directory of a value", error))?;
    opened.sync_all().map_err(FinishError::Sync)?;
    Ok(list.joined(parts.iter().map(|part| part.file.size).fold(0, u64::saturating_add)))
}

fn link_error(part: &PartFile, error: io::Error) -> JoinError {
    use io::ErrorKind::{CrossesDevices, NotFound, PermissionDenied, TooManyLinks, Unsupported};
    match error.kind() {
        NotFound => missing_file(&part.key, &part.file.id.path()).into(),
        // FAT and some network file systems.
        CrossesDevices | PermissionDenied | TooManyLinks | Unsupported => JoinError::NoLinks,
        _ => StoreError::io("link the file of a part", error).into(),
    }
}
