//! Writing files back to the disk while others use it.

use std::os::fd::AsFd;

/// Starts to write what a complete file has in memory to the disk, and gives the memory back once it is written.
///
/// A command that writes many files would otherwise leave gigabytes to the sync at its end, for which every other sync of
/// the file system waits, such as those of a server. File systems without it go on as usual.
pub(crate) fn start(file: &impl AsFd) {
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
}
