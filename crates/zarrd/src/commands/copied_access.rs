//! The tokens of a copied store: without them, a copy of a private store would be served to everybody.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::Path,
};

use crate::config::ACCESS;

/// Copies the tokens that lie in a store's directory, with their keys and links, durably; does nothing if there are none.
/// Those of a copy that was interrupted are replaced, since some may have been revoked meanwhile.
pub(super) fn copy_access(from: &Path, to: &Path) -> io::Result<()> {
    let (from, target) = (from.join(ACCESS), to.join(ACCESS));
    match fs::remove_dir_all(&target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match from.is_dir() {
        true => copy_directory(&from, &target).and_then(|()| File::open(to)?.sync_all()),
        false => Ok(()),
    }
}

/// Copies a directory, durably. Only its owner may read the copy.
pub(super) fn copy_directory(from: &Path, to: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_directory(&entry.path(), &target)?;
        } else if kind.is_file() {
            // The copy has the permissions of the original.
            fs::copy(entry.path(), &target)?;
            File::open(&target)?.sync_all()?;
        }
    }
    File::open(to)?.sync_all()
}
