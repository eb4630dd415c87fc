//! Names that a file system takes for others: those that differ in case only.

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, RawDir, SeekFrom, seek},
    io::Errno,
};

use super::directories::split;
use crate::{error::Failure, inner::Inner, writer::Writer};

/// The size of the buffer for the entries of a directory, in bytes.
const BUFFER: usize = 64 << 10;

/// The path of a file or directory that exists in the place of `path`, and of which a name differs from it in case;
/// `None` if there is none. All of the path exists.
///
/// In a directory that distinguishes case, another spelling of a name is missing, or another file: that takes one call
/// for each name with a letter. Only where both are the same file the directory has to be read.
pub(super) fn other(inner: &Inner, writer: &Writer, path: &str) -> Result<Option<String>, Failure> {
    let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
    for part in ends.filter_map(|end| path.get(..end)) {
        let (above, name) = split(part);
        if with_other_case(name).is_none() {
            continue;
        }
        let directory = inner.root.open_unfollowed(&writer.folder, above)?;
        if let Some(existing) = other_name(inner, &directory, name)? {
            return Ok(Some(if above.is_empty() { existing } else { format!("{above}/{existing}") }));
        }
    }
    Ok(None)
}

/// The name of a file or directory that exists in the place of `name` and differs from it in case; `None` if there is
/// none.
pub(super) fn other_name(inner: &Inner, directory: &OwnedFd, name: &str) -> Result<Option<String>, Failure> {
    let Some(swapped) = with_other_case(name) else { return Ok(None) };
    let id_of = |name: &str| match inner.root.attributes_unfollowed(directory, name, AtFlags::empty()) {
        Ok(found) => Ok(Some(found.id)),
        Err(Failure::File(Errno::NOENT | Errno::NAMETOOLONG)) => Ok(None),
        Err(failure) => Err(failure),
    };
    let Some(twin) = id_of(&swapped)? else { return Ok(None) };
    if id_of(name)? == Some(twin) { find_other(directory, name) } else { Ok(None) }
}

/// The name with the case of its letters changed; `None` if it has no letters.
fn with_other_case(name: &str) -> Option<String> {
    let other = |letter: char| {
        let (mut lower, mut upper) = (letter.to_lowercase(), letter.to_uppercase());
        let changed = if lower.clone().eq([letter]) { upper.next() } else { lower.next() };
        changed.unwrap_or(letter)
    };
    let swapped: String = name.chars().map(other).collect();
    (swapped != name).then_some(swapped)
}

/// The name in a directory that differs from this one in case only, if the directory does not have this one itself.
fn find_other(directory: &OwnedFd, name: &str) -> Result<Option<String>, Failure> {
    let folded = name.to_lowercase();
    let mut other = None;
    seek(directory, SeekFrom::Start(0))?;
    let mut buffer = Vec::with_capacity(BUFFER);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let Ok(found) = entry.file_name().to_str() else { continue };
        if found == name {
            return Ok(None);
        }
        if found.to_lowercase() == folded {
            other = Some(found.to_owned());
        }
    }
    Ok(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_of_a_name_changes_its_case() {
        for (name, other) in [("zarr.json", "ZARR.JSON"), ("Ab1", "aB1"), ("ä/Ö", "Ä/ö")] {
            assert_eq!(with_other_case(name).as_deref(), Some(other), "{name}");
            assert_eq!(with_other_case(other).as_deref(), Some(name), "{other}");
        }
        for name in ["0.0", "17", "中", "-_.", ""] {
            assert_eq!(with_other_case(name), None, "{name}");
        }
    }
}
