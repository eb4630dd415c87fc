//! Value files by their footers, which name key, size and number.

use std::{
    fs::{self, File},
    path::Path,
};

use zarrd_store::Key;

use crate::{
    record::{FileId, FileRef},
    values::{Buffers, Directory, read_footer, read_joined},
};

/// A value file whose footer is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundFile {
    pub(super) key: Key,
    pub(super) file: FileRef,
}

/// The value files and joined values of a store, by their names.
pub(super) fn scan(values: &Path, open: Option<&Directory>, buffers: &Buffers, mut visit: impl FnMut(FoundFile)) {
    for directory in 0..=u8::MAX {
        let path = values.join(crate::record::directory_name(directory));
        let Ok(entries) = fs::read_dir(path) else { continue };
        for entry in entries.flatten() {
            let id = entry.file_name().to_str().and_then(FileId::from_name);
            let Some(id) = id.filter(|id| id.directory() == directory) else { continue };
            let found = match entry.file_type() {
                Ok(kind) if kind.is_file() => File::open(entry.path()).ok().and_then(|file| read_footer(&file, id)),
                Ok(kind) if kind.is_dir() => open.and_then(|directory| read_joined(directory, id, buffers)),
                // Anything else could block.
                _ => None,
            };
            if let Some((key, file)) = found {
                visit(FoundFile { key, file });
            }
        }
    }
}
