//! The names of files that are no values: what writers leave beside their values while they write.
//!
//! | name | writer |
//! |---|---|
//! | `*.partial` | zarr-python: `path.with_suffix(".{uuid hex}.partial")` in `zarr/storage/_local.py`, renamed to `path`; in version 2 `{name}.{uuid hex}.partial`; rclone |
//! | `*.__lock` | tensorstore: `kLockSuffix` in `kvstore/file`, which is locked, written and renamed to the value; keys with this suffix are invalid there, too |
//! | `.{name}.XXXXXX` | rsync: `get_tmpname` in `receiver.c`, with six letters and digits of `mkstemp` |
//! | `.rsync-partial`, `.~tmp~` | rsync: the directories of `--partial-dir` and `--delay-updates` |
//! | `.zarrd-*.partial`, `.zarrd.__lock` | this store |
//! | `.nfs*` | NFS clients: a file that was removed while it was open |
//! | `.fuse_hidden*` | libfuse: the same |

/// What the names of the temporary files of this store begin with; they end in `.partial`, as those of zarr-python.
pub(crate) const OWN_TEMPORARY: &str = ".zarrd-";

/// The length of what `mkstemp` appends.
const MKSTEMP_LEN: usize = 6;

/// The directories in which rsync collects its temporary files.
const RSYNC_DIRS: [&str; 2] = [".rsync-partial", ".~tmp~"];

/// True for a file name that is a segment of a key: it is neither malformed nor that of a temporary file.
pub(crate) fn is_shown(name: &str) -> bool {
    !name.is_empty()
        && name != "."
        && name != ".."
        && !name.contains(|character: char| character == '/' || character.is_control())
        && !is_temporary(name)
}

/// True for the name of a temporary file of this store, whichever process made it.
pub(crate) fn is_own_temporary(name: &str) -> bool {
    name.starts_with(OWN_TEMPORARY) && name.ends_with(".partial")
}

/// True if no segment of a key or prefix is the name of a temporary file.
pub(crate) fn is_visible(path: &str) -> bool {
    !path.split('/').any(is_temporary)
}

fn is_temporary(name: &str) -> bool {
    name.ends_with(".partial")
        || name.ends_with(".__lock")
        || name
            .strip_prefix('.')
            .is_some_and(|rest| rest.starts_with("nfs") || rest.starts_with("fuse_hidden") || is_from_mkstemp(rest))
        || RSYNC_DIRS.contains(&name)
}

/// True for `{name}.XXXXXX`.
fn is_from_mkstemp(rest: &str) -> bool {
    rest.rsplit_once('.').is_some_and(|(name, random)| {
        !name.is_empty() && random.len() == MKSTEMP_LEN && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_temporary_files_are_not_shown() {
        for name in [
            "zarr.0f5c0b7e5d1f4c1d8f3f5a0c2e9b7a61.partial",
            "c.partial",
            ".partial",
            "zarr.json.__lock",
            ".zarr.json.a1B2c3",
            "..zarray.a1B2c3",
            ".zarray.a1B2c3",
            ".0.0.123456",
            ".zarrd-00000000000000010000000000000002.partial",
            ".zarrd.__lock",
            ".rsync-partial",
            ".~tmp~",
            ".nfs000000000123abcd00000001",
            ".fuse_hidden0000001200000001",
        ] {
            assert!(!is_shown(name), "{name}");
            assert!(!is_visible(&format!("a/{name}")), "{name}");
            assert!(!is_visible(&format!("{name}/a/")), "{name}");
        }
    }

    #[test]
    fn names_of_values_are_shown() {
        for name in [
            "zarr.json",
            ".zarray",
            ".zattrs",
            ".zgroup",
            ".zmetadata",
            "0.0",
            "0.0.123456",
            "partial",
            "a.partials",
            "__lock",
            "nfs",
            "...",
            "..a",
            ".a.b",
            ".a.1234567",
            "ä",
            " ",
        ] {
            assert!(is_shown(name), "{name}");
            assert!(is_visible(name) && is_visible(&format!("{name}/")), "{name}");
        }
        assert!(is_visible(""));
    }

    #[test]
    fn names_that_are_no_segments_are_not_shown() {
        for name in ["", ".", "..", "a\nb", "a\u{7f}", "a/b"] {
            assert!(!is_shown(name), "{name:?}");
        }
    }
}
