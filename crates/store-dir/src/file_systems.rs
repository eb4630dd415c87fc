//! The file systems below a directory.

use std::{collections::HashMap, path::Path, time::Duration};

use parking_lot::Mutex;
use rustix::{
    fd::AsFd,
    fs::{AtFlags, fstatfs},
};

use crate::{attributes::FileId, quiet::Precision};

/// The magic numbers of file systems of this machine whose times are finer than 10 ms, from `linux/magic.h` and the
/// sources of ZFS: ext2 to ext4, XFS, Btrfs, tmpfs, ZFS, F2FS, bcachefs and overlayfs.
///
/// The first three can have inodes with times in seconds, which the times themselves show.
const FINE: [u32; 8] =
    [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x2FC1_2FC1, 0xF2F5_2010, 0xCA45_1A4E, 0x794C_7630];

/// The types of these file systems, of which each has its data on this machine.
const LOCAL: [&str; 10] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "zfs", "f2fs", "bcachefs", "overlay"];

/// The time for which an NFS client keeps attributes, unless its mount options say otherwise (nfs(5): `acregmax` and
/// `acdirmax`); also assumed of file systems whose caches have unknown times.
const DEFAULT_STALENESS: Duration = Duration::from_secs(60);

/// The time for which an SMB client keeps attributes (mount.cifs(8): `actimeo`).
const SMB_STALENESS: Duration = Duration::from_secs(1);

/// The precision of file systems by device. They are few, and learnt when a file of one is seen first.
#[derive(Debug, Default)]
pub(crate) struct FileSystems {
    known: Mutex<HashMap<(u32, u32), Precision>>,
}

impl FileSystems {
    /// The precision of the file system of an open file or directory.
    pub(crate) fn precision(&self, id: FileId, file: impl AsFd) -> Precision {
        if let Some(known) = self.known.lock().get(&id.device) {
            return *known;
        }
        // The type is a signed number on some machines, which extends its highest bit.
        let fine = fstatfs(file).is_ok_and(|found| FINE.contains(&((found.f_type as u64 & 0xFFFF_FFFF) as u32)));
        let precision = if fine { Precision::Fine } else { Precision::Coarse };
        self.known.lock().insert(id.device, precision);
        precision
    }

    /// The precision of the file system of a file that is not open.
    pub(crate) fn known_precision(&self, id: FileId) -> Precision {
        self.known.lock().get(&id.device).copied().unwrap_or(Precision::Coarse)
    }
}

impl Precision {
    /// The flag with which attributes are read that must be current: those of other machines are asked for.
    pub(crate) fn current(self) -> AtFlags {
        match self {
            Self::Fine => AtFlags::empty(),
            Self::Coarse => AtFlags::STATX_FORCE_SYNC,
        }
    }
}

/// The longest time for which a file system at or below `directory` may keep attributes that have changed elsewhere,
/// given the text of `/proc/self/mountinfo`.
pub(crate) fn staleness(directory: &Path, mounts: &str) -> Duration {
    let mounts: Vec<Mount> = mounts.lines().filter_map(Mount::parse).collect();
    let above = mounts.iter().filter(|mount| directory.starts_with(&mount.point)).map(|mount| mount.point.len()).max();
    // Of mounts on one directory, the last hides the others.
    let own = mounts.iter().rfind(|mount| Some(mount.point.len()) == above && directory.starts_with(&mount.point));
    let below = mounts.iter().filter(|mount| Path::new(&mount.point).starts_with(directory));
    own.into_iter().chain(below).map(Mount::staleness).max().unwrap_or_default()
}

/// True if all file systems on the way to `directory`, at and below it are those of this machine, given the text of
/// `/proc/self/mountinfo`. Reading attributes there asks no other machine.
pub(crate) fn is_local(directory: &Path, mounts: &str) -> bool {
    let mounts = mounts.lines().filter_map(Mount::parse);
    let mut on_the_way = mounts
        .filter(|mount| directory.starts_with(&mount.point) || Path::new(&mount.point).starts_with(directory))
        .peekable();
    on_the_way.peek().is_some() && on_the_way.all(|mount| LOCAL.contains(&mount.kind.as_str()))
}

/// A line of `/proc/self/mountinfo`; see proc_pid_mountinfo(5).
#[derive(Debug)]
struct Mount {
    point: String,
    kind: String,
    options: String,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let point = unescape(mount.split(' ').nth(4)?);
        let mut fields = file_system.split(' ');
        let kind = fields.next()?.to_owned();
        Some(Self { point, kind, options: fields.nth(1)?.to_owned() })
    }

    fn staleness(&self) -> Duration {
        let default = match self.kind.as_str() {
            "nfs" | "nfs4" => DEFAULT_STALENESS,
            "cifs" | "smb3" => SMB_STALENESS,
            "9p" | "fuse" | "fuseblk" | "afs" => return DEFAULT_STALENESS,
            kind if kind.starts_with("fuse.") => return DEFAULT_STALENESS,
            _ => return Duration::ZERO,
        };
        if self.options.split(',').any(|option| option == "noac") {
            return Duration::ZERO;
        }
        let seconds = |name: &str| {
            let options = self.options.split(',').filter_map(|option| option.split_once('='));
            options.filter(|(option, _)| *option == name).find_map(|(_, value)| value.parse().ok())
        };
        let all: Option<u64> = seconds("actimeo");
        let [files, directories] =
            ["acregmax", "acdirmax"].map(|name| seconds(name).or(all).map_or(default, Duration::from_secs));
        files.max(directories)
    }
}

/// Replaces the octal escapes of spaces, tabs, line ends and backslashes.
fn unescape(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (escape, character)| text.replace(escape, character))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n";

    fn of(directory: &str, mounts: &str) -> u64 {
        staleness(Path::new(directory), &format!("{ROOT}{mounts}")).as_secs()
    }

    #[test]
    fn a_local_directory_is_never_stale() {
        assert_eq!(of("/data", ""), 0);
        assert_eq!(of("/data", "30 22 0:40 / /mnt/lab rw - nfs4 server:/lab rw,vers=4.2\n"), 0);
        assert_eq!(of("/data", "30 22 0:40 / /data2 rw - nfs4 server:/lab rw,vers=4.2\n"), 0);
    }

    #[test]
    fn the_options_of_a_network_mount_bound_the_staleness() {
        for (kind, options, seconds) in [
            ("nfs4", "rw,vers=4.2", 60),
            ("nfs", "rw,acregmin=1,acregmax=10,acdirmax=20", 20),
            ("nfs", "rw,acregmax=90", 90),
            ("nfs", "rw,actimeo=7", 7),
            ("nfs4", "rw,noac", 0),
            ("cifs", "rw", 1),
            ("smb3", "rw,actimeo=30", 30),
            ("fuse.sshfs", "rw", 60),
            ("ext4", "rw", 0),
        ] {
            let mount = format!("30 22 0:40 / /mnt/lab rw,noatime shared:5 - {kind} server:/lab {options}\n");
            for directory in ["/mnt/lab", "/mnt/lab/a/b", "/mnt"] {
                assert_eq!(of(directory, &mount), seconds, "{directory} {kind} {options}");
            }
        }
    }

    #[test]
    fn a_directory_is_local_if_no_other_machine_is_on_the_way_or_below() {
        let is_local = |directory: &str, mounts: &str| is_local(Path::new(directory), &format!("{ROOT}{mounts}"));
        let nfs = "30 22 0:40 / /mnt/lab rw - nfs4 server:/lab rw\n";
        let hidden = format!("{nfs}31 30 0:41 / /mnt/lab/in rw - ext4 /dev/b rw\n");
        for (directory, mounts, local) in [
            ("/data", "", true),
            ("/data", nfs, true),
            ("/mnt", nfs, false),
            ("/mnt/lab/a", nfs, false),
            ("/mnt/lab/in", &hidden, false),
            ("/proc/1", "30 22 0:40 / /proc rw - proc proc rw\n", false),
            ("/mnt/a", "30 22 0:40 / /mnt rw - fuse.sshfs server: rw\n", false),
        ] {
            assert_eq!(is_local(directory, mounts), local, "{directory} {mounts}");
        }
        assert!(!super::is_local(Path::new("/data"), ""), "nothing is known");
    }

    #[test]
    fn the_last_mount_on_a_directory_counts() {
        let nfs = "30 22 0:40 / /mnt/my\\040lab rw - nfs4 server:/lab rw\n";
        let hidden = format!("{nfs}31 22 0:41 / /mnt/my\\040lab/in rw - ext4 /dev/b rw\n");
        assert_eq!(of("/mnt/my lab/in", &hidden), 0);
        assert_eq!(of("/mnt/my lab", &hidden), 60);
    }
}
