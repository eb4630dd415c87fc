//! Small file systems, which a test can fill.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::skip::{is_root, skip};

/// What a small disk is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// Memory.
    Tmpfs,
    /// An image of ext4, through a loop device.
    Ext4,
}

/// A small file system of its own, unmounted in the end.
#[derive(Debug)]
pub struct SmallDisk {
    /// Holds the mount point and, of ext4, the image.
    dir: TempDir,
}

impl SmallDisk {
    /// A disk of so many MiB; `None`, said on stderr, where none can be mounted.
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
            FileSystem::Ext4 => {
                let image = disk.dir.path().join("image");
                let made = File::create(&image).and_then(|file| file.set_len(u64::from(mib) << 20));
                made.expect("make an image");
                // No blocks are kept for root, whom the tests run as.
                if !succeeds(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&image)) {
                    skip("mkfs.ext4");
                    return None;
                }
                mount.args(["-o", "loop"]).arg(image);
            }
        }
        if !succeeds(mount.arg(disk.path())) {
            skip(&format!("the right to mount a disk of {kind:?}"));
            return None;
        }
        Some(disk)
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("mounted")
    }

    /// Where a test has its store.
    pub fn store(&self) -> PathBuf {
        self.path().join("store")
    }

    /// Takes space with a file of another program's, until `spare` bytes are left.
    pub fn fill(&self, spare: u64) {
        let mut filler = File::options().create(true).append(true).open(self.filler()).expect("make the filler");
        for piece in [1 << 20, 4096_usize] {
            while self.free() >= spare + piece as u64 {
                match filler.write_all(&vec![1; piece]).and_then(|()| filler.sync_all()) {
                    Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                    written => written.expect("write the filler"),
                }
            }
        }
    }

    /// Gives back what [`fill`](Self::fill) took.
    pub fn unfill(&self) {
        match fs::remove_file(self.filler()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => panic!("remove the filler: {error}"),
            _ => {}
        }
    }

    /// The bytes that files can still take.
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

fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
