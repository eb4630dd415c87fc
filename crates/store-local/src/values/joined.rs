//! Joined values: the files of an upload's parts as one value, whose bytes are not copied.
//!
//! ```text
//! values/xx/<id>/        a directory in the place of a value file
//!   list                 for each part: its end in the value u64, checksum of its file u64, length of its key u16;
//!                        then a trailer as that of a value file, with the key of the value
//!   00000, 00001 …       the files of the parts, with the trailers that they were written with: hard links
//! ```
//!
//! Numbers are big-endian. The record of the key has the length of the value, and the checksum of the list's trailer. So a
//! reader checks any range by the list and the parts that have it. Parts and list are never changed; when the upload ends,
//! the names that the files of the parts had in it are removed as those of any value.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use bytes::{Buf, BufMut};
use zarrd_store::Key;

use crate::record::{FileId, FileRef};

/// The name of the list of parts.
pub(super) const LIST: &str = "list";
/// The length of a part in the list, in bytes.
const ENTRY_BYTES: usize = 8 + 8 + 2;

/// A value file that becomes a part of a joined value.
#[derive(Clone, Debug)]
pub(crate) struct PartFile {
    pub(crate) key: Key,
    pub(crate) file: FileRef,
}

/// A part in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListedPart {
    /// The end of the part in the value.
    pub(super) end: u64,
    /// The last checksum of the file's trailer, which covers the key and number that it was written with.
    pub(super) checksum: u64,
    pub(super) key_len: u16,
}

/// The path of a part in the directory of values.
pub(super) fn part_path(id: FileId, index: usize) -> String {
    format!("{}/{index:05}", id.path())
}

/// The path of the list in the directory of values.
pub(super) fn list_path(id: FileId) -> String {
    format!("{}/{LIST}", id.path())
}

/// The parts in a list; `None` if it is damaged.
pub(super) fn decode(list: &[u8]) -> Option<Vec<ListedPart>> {
    let (entries, rest) = list.as_chunks::<ENTRY_BYTES>();
    let parts = entries.iter().map(|entry| {
        let mut entry = &entry[..];
        let (end, checksum, key_len) = (entry.get_u64(), entry.get_u64(), entry.get_u16());
        ListedPart { end, checksum, key_len }
    });
    let parts: Vec<_> = parts.collect();
    (rest.is_empty() && parts.is_sorted_by_key(|part| part.end)).then_some(parts)
}

/// The size of the files of a joined value in bytes; `None` if the directory has anything else.
pub(crate) fn size(path: &Path) -> io::Result<Option<u64>> {
    let Some(files) = files(path)? else { return Ok(None) };
    let mut bytes = 0_u64;
    for file in files {
        bytes = bytes.saturating_add(fs::symlink_metadata(file)?.len());
    }
    Ok(Some(bytes))
}

/// Removes a joined value, unless its directory has anything else.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let files = files(path)?.ok_or(io::ErrorKind::DirectoryNotEmpty)?;
    files.iter().try_for_each(fs::remove_file)?;
    fs::remove_dir(path)
}

/// The paths of list and parts; `None` if the directory has anything else.
fn files(path: &Path) -> io::Result<Option<Vec<PathBuf>>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_part = name.len() == 5 && name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
        if !(is_part || name == LIST) || entry.file_type()?.is_dir() {
            return Ok(None);
        }
        files.push(entry.path());
    }
    Ok(Some(files))
}

/// The list of some parts.
pub(super) fn encode(parts: &[PartFile]) -> Vec<u8> {
    let (mut list, mut end) = (Vec::with_capacity(parts.len().saturating_mul(ENTRY_BYTES)), 0_u64);
    for PartFile { key, file } in parts {
        end = end.saturating_add(file.size);
        list.put_u64(end);
        list.put_u64(file.checksum);
        list.put_u16(u16::try_from(key.as_bytes().len()).unwrap_or(u16::MAX));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_round_trip_and_are_read_whole() {
        let part = |n: u64| PartFile {
            key: Key::parse(&"k".repeat(1 + n as usize)).unwrap(),
            file: FileRef { id: FileId(n), size: n * 7, checksum: n + 1 },
        };
        let parts: Vec<PartFile> = (0..3).map(part).collect();
        let list = encode(&parts);
        let listed = |end, checksum, key_len| ListedPart { end, checksum, key_len };
        assert_eq!(decode(&list).unwrap(), [listed(0, 1, 1), listed(7, 2, 2), listed(21, 3, 3)]);
        let cut = (0..list.len()).filter(|len| decode(&list[..*len]).is_some());
        assert_eq!(cut.collect::<Vec<_>>(), [0, 18, 36], "only whole parts");
        let swapped = [&list[18..], &list[..18]].concat();
        assert_eq!(decode(&swapped), None);
    }

    #[test]
    fn only_what_a_joined_value_has_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("value");
        let fill = |names: &[&str]| {
            fs::create_dir(&path).unwrap();
            names.iter().for_each(|name| fs::write(path.join(name), "1234").unwrap());
        };
        fill(&["list", "00000", "00001"]);
        assert_eq!(size(&path).unwrap(), Some(12));
        remove(&path).unwrap();
        assert!(!path.exists());
        fill(&["list", "00000", "notes"]);
        assert_eq!(size(&path).unwrap(), None);
        assert_eq!(remove(&path).unwrap_err().kind(), io::ErrorKind::DirectoryNotEmpty);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 3);
    }
}
