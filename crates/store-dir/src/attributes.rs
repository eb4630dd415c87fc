//! The attributes of files, and the versions that are made of them.

use std::{
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::{
    fd::AsFd,
    fs::{AtFlags, CWD, FileType, StatxFlags, StatxTimestamp, statx},
    io::Errno,
    path::Arg,
};
use zarrd_store::{Key, ValueMeta, Version, VersionHash};

use crate::error::Failure;

/// A file or directory among all of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
}

/// The type of a file, as far as the store distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Regular,
    Directory,
    Symlink,
    /// FIFOs, sockets and devices.
    Special,
}

/// The attributes of a file at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) id: FileId,
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    /// The number of names of the file.
    pub(crate) links: u32,
    pub(crate) modified: Time,
    pub(crate) changed: Time,
    /// The time when the file was created, if its file system keeps it.
    pub(crate) created: Option<Time>,
}

/// A time of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
}

/// Makes versions of attributes. Servers that were given the same name make equal ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Versions(VersionHash);

impl Attributes {
    /// Reads the attributes of an open file. `flags` may ask the server of a network file system.
    pub(crate) fn of(file: impl AsFd, flags: AtFlags) -> Result<Self, Errno> {
        Self::at(file, "", flags | AtFlags::EMPTY_PATH)
    }

    /// Reads the attributes of `name` in a directory, without following a symbolic link.
    pub(crate) fn of_name(directory: impl AsFd, name: &str, flags: AtFlags) -> Result<Self, Errno> {
        Self::at(directory, name, flags | AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Reads the attributes of what a path leads to.
    pub(crate) fn of_path(path: &Path) -> Result<Self, Errno> {
        Self::at(CWD, path, AtFlags::empty())
    }

    fn at(file: impl AsFd, name: impl Arg, flags: AtFlags) -> Result<Self, Errno> {
        let found = statx(file, name, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME)?;
        let has_created = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
        let kind = match FileType::from_raw_mode(found.stx_mode.into()) {
            FileType::RegularFile => Kind::Regular,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Symlink,
            _ => Kind::Special,
        };
        Ok(Self {
            id: FileId { device: (found.stx_dev_major, found.stx_dev_minor), inode: found.stx_ino },
            kind,
            size: found.stx_size,
            links: found.stx_nlink,
            modified: Time::new(found.stx_mtime),
            changed: Time::new(found.stx_ctime),
            created: has_created.then(|| Time::new(found.stx_btime)),
        })
    }

    /// True if this is the file of a value, and false if it is a directory, which is a prefix of keys. Anything else is no
    /// absence of a value, and an error.
    pub(crate) fn is_value(&self) -> Result<bool, Failure> {
        match self.kind {
            Kind::Regular => Ok(true),
            Kind::Directory => Ok(false),
            // Links are followed, so that it is none.
            Kind::Symlink | Kind::Special => Err(Failure::Special),
        }
    }

    /// True if the bytes are still those that the file had with these attributes.
    ///
    /// Removing the last name, as the rename of another file to it does, sets `changed` as well, but not `modified`, and no
    /// program can open the file for writing afterwards. One that has it open for writing already, and restores
    /// `modified`, is not noticed. While a file has other names, any change of `changed` may be that of a write.
    pub(crate) fn has_same_bytes(&self, later: &Self) -> bool {
        let data = |attributes: &Self| (attributes.id, attributes.kind, attributes.size, attributes.modified);
        let lost_its_last_name = self.links > 0 && later.links == 0;
        data(self) == data(later) && (self.changed == later.changed || lost_its_last_name)
    }
}

impl Time {
    fn new(time: StatxTimestamp) -> Self {
        Self { seconds: time.tv_sec, nanoseconds: time.tv_nsec }
    }

    /// The time for programs; one before 1970 is that of 1970.
    pub(crate) fn system(self) -> SystemTime {
        let seconds = u64::try_from(self.seconds).unwrap_or_default();
        UNIX_EPOCH.checked_add(Duration::new(seconds, self.nanoseconds)).unwrap_or(UNIX_EPOCH)
    }

    pub(crate) fn bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        let (seconds, nanoseconds) = bytes.split_at_mut(8);
        seconds.copy_from_slice(&self.seconds.to_le_bytes());
        nanoseconds.copy_from_slice(&self.nanoseconds.to_le_bytes());
        bytes
    }
}

impl Versions {
    pub(crate) fn new(hash: VersionHash) -> Self {
        Self(hash)
    }

    /// The metadata of a value whose file has had these attributes for long enough.
    pub(crate) fn meta(self, key: &Key, attributes: &Attributes) -> ValueMeta {
        let numbers = [attributes.id.inode, attributes.size].map(u64::to_le_bytes);
        let times = [attributes.modified, attributes.changed].map(Time::bytes);
        let version = self.0.version(key, &[&numbers[0], &numbers[1], &times[0], &times[1]]);
        Self::with_version(attributes, version)
    }

    /// The metadata of a value that is being written: its version is like no other.
    pub(crate) fn unsettled_meta(attributes: &Attributes) -> ValueMeta {
        Self::with_version(attributes, Version::from_u128(rand::random()))
    }

    fn with_version(attributes: &Attributes, version: Version) -> ValueMeta {
        let changed = attributes.changed.system().duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = u64::try_from(changed.as_millis()).unwrap_or_default();
        let modified = UNIX_EPOCH.checked_add(Duration::from_millis(millis)).unwrap_or(UNIX_EPOCH);
        ValueMeta { size: attributes.size, version, modified, attributes: zarrd_store::Attributes::NONE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes() -> Attributes {
        let time = Time { seconds: 1_700_000_000, nanoseconds: 123_456_789 };
        let id = FileId { device: (8, 1), inode: 42 };
        Attributes { id, kind: Kind::Regular, size: 10, links: 1, modified: time, changed: time, created: Some(time) }
    }

    fn later() -> Time {
        Time { seconds: 1_700_000_000, nanoseconds: 123_456_790 }
    }

    #[test]
    fn every_attribute_that_a_change_of_bytes_changes_is_part_of_the_version() {
        let key = Key::parse("a/b").unwrap();
        let versions = Versions::new(VersionHash::new("dir:/data"));
        let first = attributes();
        let version = versions.meta(&key, &first).version;
        assert_eq!(versions.meta(&key, &first).version, version);
        let other_inode = Attributes { id: FileId { inode: 43, ..first.id }, ..first };
        for other in [
            other_inode,
            Attributes { size: 11, ..first },
            Attributes { modified: later(), ..first },
            Attributes { changed: later(), ..first },
        ] {
            assert_ne!(versions.meta(&key, &other).version, version, "{other:?}");
            assert!(!first.has_same_bytes(&other), "{other:?}");
        }
        assert_ne!(versions.meta(&Key::parse("a/c").unwrap(), &first).version, version);
    }

    #[test]
    fn servers_of_one_name_agree_on_versions_whatever_their_device_numbers_are() {
        let key = Key::parse("a/b").unwrap();
        let here = attributes();
        let there = Attributes { id: FileId { device: (0, 57), ..here.id }, ..here };
        let version = |name, attributes| Versions::new(VersionHash::new(name)).meta(&key, &attributes).version;
        assert_eq!(version("dir:/data", here), version("dir:/data", there));
        assert_ne!(version("dir:/data", here), version("dir:/other", here));
    }

    #[test]
    fn an_unsettled_version_is_never_repeated() {
        let version = || Versions::unsettled_meta(&attributes()).version;
        assert_ne!(version(), version());
    }

    #[test]
    fn the_removal_of_the_last_name_does_not_change_the_bytes() {
        let first = Attributes { links: 2, ..attributes() };
        let removed = Attributes { links: 0, changed: later(), ..first };
        assert!(first.has_same_bytes(&removed));
        assert!(!first.has_same_bytes(&Attributes { modified: later(), ..removed }));
        for links in 1..=3 {
            assert!(!first.has_same_bytes(&Attributes { links, ..removed }), "{links}");
        }
        let nameless = Attributes { links: 0, ..first };
        assert!(!nameless.has_same_bytes(&removed));
    }

    #[test]
    fn the_time_of_a_value_is_that_of_its_last_change_in_milliseconds() {
        let meta = Versions::new(VersionHash::new("")).meta(&Key::parse("a").unwrap(), &attributes());
        assert_eq!(meta.modified, UNIX_EPOCH + Duration::from_millis(1_700_000_000_123));
        let old = Attributes { changed: Time { seconds: -5, nanoseconds: 0 }, ..attributes() };
        assert_eq!(Versions::new(VersionHash::new("")).meta(&Key::parse("a").unwrap(), &old).modified, UNIX_EPOCH);
    }
}
