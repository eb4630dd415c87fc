//! Small file systems that a test can fill.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::skip::{is_root, skip};

/// The storage of a small disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// Memory.
    Tmpfs,
    /// Memory, with 1,500 inodes.
    TmpfsOfFewInodes,
    /// An ext4 image, through a loop device.
    Ext4,
    /// An ext4 image with 1,500 inodes.
    Ext4OfFewInodes,
    /// A btrfs image; what is below the mount point has a quota of a quarter of it.
    BtrfsWithQuota,
    /// An XFS image, whose files can share blocks.
    Xfs,
}

/// The inodes of a file system with few of them.
const FEW_INODES: u32 = 1500;

/// A mounted small file system; unmounted on drop.
#[derive(Debug)]
pub struct SmallDisk {
    /// Contains the mount point and the image, if there is one.
    dir: TempDir,
}

impl SmallDisk {
    /// Mounts a disk of `mib` MiB; `None` if mounting is not possible, which is reported as a skipped test.
    pub fn mount(kind: FileSystem, mib: u32) -> Option<Self> {
        if !is_root("mounting a small file system") {
            return None;
        }
        let disk = Self { dir: tempfile::tempdir().expect("a temporary directory") };
        fs::create_dir(disk.path()).expect("make the mount point");
        let mut mount = Command::new("mount");
        match kind {
            FileSystem::Tmpfs => {
                mount.args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "zarrd-test"]);
            }
            FileSystem::TmpfsOfFewInodes => {
                mount.args(["-t", "tmpfs", "-o", &format!("size={mib}m,nr_inodes={FEW_INODES}"), "zarrd-test"]);
            }
            // No blocks are reserved for root, as which the tests run.
            FileSystem::Ext4 => {
                mount.args(["-o", "loop"]).arg(disk.image(mib, "mkfs.ext4", &["-q", "-F", "-m", "0"])?);
            }
            FileSystem::Ext4OfFewInodes => {
                let inodes = FEW_INODES.to_string();
                mount.args(["-o", "loop"]).arg(disk.image(
                    mib,
                    "mkfs.ext4",
                    &["-q", "-F", "-m", "0", "-N", &inodes],
                )?);
            }
            FileSystem::BtrfsWithQuota => {
                mount.args(["-o", "loop"]).arg(disk.image(mib, "mkfs.btrfs", &["-q"])?);
            }
            FileSystem::Xfs => {
                mount.args(["-o", "loop"]).arg(disk.image(mib, "mkfs.xfs", &["-q", "-m", "reflink=1"])?);
            }
        }
        if !succeeds(mount.arg(disk.path())) {
            skip(&format!("the right to mount a disk of {kind:?}"));
            return None;
        }
        if kind == FileSystem::BtrfsWithQuota {
            let btrfs = |arguments: &[&str]| succeeds(Command::new("btrfs").args(arguments).arg(disk.path()));
            let limit = format!("{}M", mib / 4);
            assert!(btrfs(&["quota", "enable"]) && btrfs(&["qgroup", "limit", &limit]), "set a quota");
        }
        Some(disk)
    }

    /// Makes an image with a program; `None` if it is missing, which is reported as a skipped test.
    fn image(&self, mib: u32, program: &str, arguments: &[&str]) -> Option<PathBuf> {
        let image = self.dir.path().join("image");
        let created = File::create(&image).and_then(|file| file.set_len(u64::from(mib) << 20));
        created.expect("make an image");
        if !succeeds(Command::new(program).args(arguments).arg(&image)) {
            skip(program);
            return None;
        }
        Some(image)
    }

    /// The mount point.
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("mounted")
    }

    /// The directory for the store under test.
    pub fn store(&self) -> PathBuf {
        self.path().join("store")
    }

    /// Takes space with a file of another program, until `spare` bytes are left.
    pub fn fill(&self, spare: u64) {
        let mut filler = match File::options().create(true).append(true).open(self.filler()) {
            Err(error) if is_full(&error) => return,
            filler => filler.expect("make the filler"),
        };
        for piece in [1 << 20, 4096_usize] {
            while self.free() >= spare + piece as u64 {
                match filler.write_all(&vec![1; piece]).and_then(|()| filler.sync_all()) {
                    Err(error) if is_full(&error) => break,
                    written => written.expect("write the filler"),
                }
            }
        }
    }

    /// Takes all inodes with files of another program.
    pub fn take_inodes(&self) {
        let full = (0..).find_map(|number| File::create(self.path().join(format!("taken-{number}"))).err());
        assert!(full.is_some_and(|error| is_full(&error)), "take all inodes");
    }

    /// Removes the files created by [`take_inodes`](Self::take_inodes).
    pub fn give_back_inodes(&self) {
        let entries = fs::read_dir(self.path()).expect("the disk can be listed").flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("taken-")) {
            fs::remove_file(entry.path()).expect("a file can be removed");
        }
    }

    /// Removes the file created by [`fill`](Self::fill).
    pub fn remove_filler(&self) {
        match fs::remove_file(self.filler()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => panic!("remove the filler: {error}"),
            _ => {}
        }
    }

    /// The number of bytes available to files.
    pub fn free(&self) -> u64 {
        let stat = rustix::fs::statvfs(self.path()).expect("the disk can be asked");
        stat.f_bavail * stat.f_frsize
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        unmount(&self.path());
    }
}

fn unmount(path: &Path) {
    let _ = Command::new("umount").arg("--lazy").arg(path).status();
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
