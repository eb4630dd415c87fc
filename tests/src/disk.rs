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
    /// An ext4 image, through a loop device.
    Ext4,
}

/// A mounted small file system; unmounted on drop.
#[derive(Debug)]
pub struct SmallDisk {
    /// Contains the mount point and, for ext4, the image.
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
            FileSystem::Ext4 => {
                let image = disk.dir.path().join("image");
                let created = File::create(&image).and_then(|file| file.set_len(u64::from(mib) << 20));
                created.expect("make an image");
                // No blocks are reserved for root, as which the tests run.
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

fn succeeds(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
