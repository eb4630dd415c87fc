//! A store over a directory of files that other programs go on writing.
//!
//! [`DirStore`] reads what zarr-python, xarray, tensorstore, rsync and others write: each regular file is a value, and
//! its path below the directory is the key. It is opened with [`Options`], for reading or for [writing](#writing) too;
//! [`Keyed`](zarrd_store::Keyed) makes snapshots of it.
//!
//! # Lifecycle of a read
//!
//! ```text
//!  look up (O_PATH) ── nothing, or a directory ──► absent
//!        │         └── a link to nothing, a FIFO, a socket, a device ──► an error
//!      open, attributes ── not quiet yet ──► wait, attributes ── changed ──┐
//!        │ quiet                                   │ unchanged             │
//!        ▼                                         ▼                       │
//!      read a buffer, attributes ◄─────────────────┘                       │
//!        │             └── changed ── nothing was yielded ──► once more ◄──┘
//!        │ unchanged            └── otherwise ──► StoreError::Changed
//!        ▼
//!      yield the buffer
//! ```
//!
//! A value of up to 1 MiB is read and checked before it is returned; a larger one is streamed in buffers of 256 KiB, each
//! checked before it is yielded. A file that is shorter than promised has changed: its value is never short and never
//! filled with zeros. A file that is replaced by a rename, or removed, is read to its end, if that was its last name: while
//! it has others, any change of its time of change may be that of a write. If the value keeps changing, the read fails
//! with [`StoreError::Changed`](zarrd_store::StoreError::Changed) after 8 tries, or when it has waited for 4 s.
//!
//! If all file systems are those of this machine, names and bytes that are in memory are looked up and read on the
//! calling thread (`RESOLVE_CACHED`, `RWF_NOWAIT`): to switch threads takes longer. What is not in memory, and whatever
//! is unusual, is done on the thread pool for work that blocks. Names that were asked for a moment ago are taken to be in
//! memory if many are read.
//!
//! # Versions, and files that were just written
//!
//! A version is a hash of the key and the file's inode number, size, and times of modification and change, each with
//! nanoseconds. The hash is keyed with the name in [`Options`], so all servers of a directory have equal versions. The
//! number of the device is left out: NFS, Btrfs and overlayfs assign it when they are mounted, so servers would disagree.
//!
//! Equal versions of a key must mean equal bytes, but a file can be changed without changing its attributes: by a second
//! write within one tick of the clock of its file system, or by the rest of a long write, since Linux sets the times when
//! a write begins. Git calls such entries racy, and compares contents until they are two seconds old. Contents are no
//! remedy here: to hash a shard for each request costs too much, and a version that depends on the age of a file changes
//! while an answer is made of it. A version that is unique for each read would fail every snapshot of a file that was
//! just written, although nothing changes any more.
//!
//! Instead, **a file is read when it has been quiet for some time**: when its time of change is older than that, or its
//! attributes were the same before and after waiting for the rest of it. What changes the file afterwards has another
//! time of change, and has it before its first byte can be read, so the attributes that are read after the bytes show it.
//! The version is the same at any age. The quiet time is
//!
//! - 50 ms if the time of change is later than that of modification, and the file was created at most 2 s before the
//!   latter, on file systems of this machine that are known to have fine times (ext4, XFS, Btrfs, tmpfs, ZFS, F2FS,
//!   bcachefs, overlayfs). A write sets both to one time, so something else happened after the last write began: in a file
//!   that was created for these bytes the rename of a writer that is done, for instance. The clock of these file systems
//!   ticks at least every 10 ms.
//! - If the file is older, what is left of 2 s after its last write began, and at least 50 ms: it may be written in place,
//!   while any program gives it a mode, an owner or another name. A file whose writer took longer than 2 s, or whose file
//!   system does not keep the time of creation, waits so as well: it cannot be told from one that is written in place.
//! - 2 s otherwise: for files that may be within a write, which can be stopped for long between setting the times and
//!   copying the bytes (50 ms are not enough: on a busy machine, tests found torn values); on other file systems, which
//!   include those of networks, whose clocks may differ from that of this machine by the same time; and if the time of
//!   change is in whole milliseconds. A small file that is written and renamed within one tick has equal times.
//!
//! A file with a time of change in the future is quiet when this process has known it for the quiet time with the same
//! attributes. The age is that of the time of change: programs set the time of modification to anything. `head` and listings
//! wait as well; if a file is still being written then, its version is one that never occurs again.
//!
//! A file that was waited for stays open for some seconds, and is what is read of that version: other files may have taken
//! its place by then. So a value can be read even if it is replaced more often than its files become quiet.
//!
//! A file that was renamed within the tick in which it was written cannot be told from one that is being written. Its
//! inode number is new in both cases, and so are its times, that of creation as well; the fine times of Linux 6.13 set
//! apart only changes between which the attributes were asked for, and it is too late to ask. That a program has the
//! file open for writing is known to the kernel, but what would show it, a lease, takes the rights of the file's owner,
//! and stops the next program that opens the file for writing.
//!
//! This cannot be detected: a program that writes a value in several steps with longer pauses than the quiet time,
//! since only it knows when the value is complete; one that writes in place to a file that is younger than 2 s, of
//! which the mode, owner or name is changed meanwhile; one of which another program sets the time of modification
//! meanwhile; one that writes through a memory map, since Linux sets the times once until the page is written back; one
//! that stops within a single write for longer than that; and changes on a file system without a time of change of its
//! own (FAT, SSHFS) that restore the time of modification.
//! The writers in the table of the module `names` write to another file and rename it, and have none of these problems.
//!
//! # Names
//!
//! - Names that are no segments of a [`Key`](zarrd_store::Key) (not UTF-8, with control characters, too long), and those of
//!   temporary files (`*.partial`, `*.__lock`, `.{name}.XXXXXX`, `.nfs*`, `.fuse_hidden*`) are neither listed nor read.
//!   The end that rsync appends looks like an extension of six letters or digits, so `.a.backup` is such a name as well.
//! - FIFOs, sockets and devices are no values and are not opened. If one takes the place of a file between the check and
//!   the opening, it is opened without blocking, and closed. Listings leave them out, and links that lead to nothing.
//! - Only a missing name is absence, of the file or of a directory above it. To read what is, or is below, a FIFO, a socket
//!   or a device fails, and so does what is, or is below, a link that leads to nothing, such as one to a file system that
//!   is not mounted: a chunk that were absent would be read as the fill value. But a key is absent if it is a directory,
//!   or below the file of a value: programs look for the documents of a node where a chunk is.
//! - A key is not also a prefix of keys, as the names of a directory are unique. A directory is a prefix, even an empty
//!   one: to find out whether keys are below it costs a pass over everything below.
//! - On a file system that ignores case or normalises Unicode, other spellings of a name find its file as well; listings
//!   have the spelling of the directory.
//! - The directory itself may be replaced; the one that is at the path is read. If there is none, everything fails.
//!
//! # Opening
//!
//! Every file is opened with `openat2`, relative to the directory and with `RESOLVE_NO_MAGICLINKS`; without it (before Linux
//! 5.6, or in a sandbox that forbids it) the store does not open. [`Symlinks::Within`] adds `RESOLVE_BENEATH`, so that no
//! link leads out, whoever exchanges it at whatever moment. A link that may not be followed fails the read of what is
//! behind it; listings leave it out and log a warning, as they do with links to directories above themselves. The first
//! try follows no link (`RESOLVE_NO_SYMLINKS`): what it does not find is missing, and only where there are links it takes
//! more calls to find out whether one of them leads to nothing.
//!
//! Listings take one pass over each directory of a page, and keep only the names that the page needs. What a directory
//! that is removed meanwhile contained is not listed. A directory without permission fails the listing.
//!
//! Files and directories that [`Options::private`] names are never served, nor what is below them: each opened file, and
//! each directory above it, is compared with them by device and inode, whatever link, mount or name leads there. Such a
//! file cannot be read, and listings find nothing in such a directory. The store does not open if its directory contains
//! one of them, or lies in one.
//!
//! # Writing
//!
//! A store that is opened with [`Options::writes`] sets and erases values as plain files, key by key: a temporary file in
//! the directory of the key is synced and renamed, and every directory that gained a name is synced. Preconditions hold
//! among the changes of this process, which alone writes by a store: another one is refused with [`OpenError::Locked`].
//!
//! - A file that this process wrote is read at once. Its time of modification is one that no other file of the process had,
//!   so that its version is new whatever the clock and the inode are.
//! - Links are never followed for writing. A link that has the name of a key is replaced or removed itself.
//! - A directory that is replaced while the store is open is not written into, and neither is the one that took its place.
//! - A key that is a directory, or lies below a file, fails with
//!   [`StoreError::NameConflict`](zarrd_store::StoreError::NameConflict), and so does one that differs in case from what exists, where the file system
//!   ignores case. Unicode normalisation is not looked at.
//! - Erasing removes the directories that are empty then, except that of the store.
//! - If a directory cannot be synced after a rename, the set fails although readers see the new value.
//!
//! # Staleness
//!
//! Local file systems show every change at once. NFS and SMB clients keep attributes for as long as their mount options
//! say (60 s and 1 s by default), which [`DirStore::guarantees`] reports with the largest of all mounts at or below the
//! directory; for FUSE, 9p and AFS it reports 60 s. A file that is being read is checked with its server.
//!
//! # Modules
//!
//! | module | |
//! |---|---|
//! | `store` | [`DirStore`] and its implementation of the store traits |
//! | `read`, `list` | reading a value, and listing keys: the parts that wait |
//! | `metadata_reader`, `recent`, `recent_set` | metadata of many files, directory by directory, and the names of which the kernel has the inodes |
//! | `value_file`, `open_files`, `buffers` | an open file, those that stay open, and the buffers that are read into |
//! | `walk`, `directory` | the directories of a listing, and the children of one |
//! | `held`, `small`, `sorted_names` | the names of large directories between pages, and of small ones between listings |
//! | `inner` | what clones share; running what blocks |
//! | `root` | opening files |
//! | `attributes`, `quiet`, `file_systems` | attributes and versions, the quiet time, and the kinds of file systems |
//! | `names` | names of files that are no values |
//! | `private` | files of the server itself, which are never served |
//! | `change`, `writeable` | sets and erases, and the store trait for them |
//! | `writer` | what a store that writes has in addition: its lock, its times, what it wrote |
//! | `url` | URLs, and the kind of store for programs that open them |

#![cfg(target_os = "linux")]

mod attributes;
mod buffers;
mod change;
mod directory;
mod error;
mod faults;
mod file_systems;
mod held;
mod inner;
mod list;
mod listing_state;
mod metadata_reader;
mod names;
mod open_files;
mod options;
mod part;
mod private;
mod quiet;
mod read;
mod recent;
mod recent_set;
mod root;
mod small;
mod sorted_names;
mod store;
mod url;
mod value_file;
mod walk;
mod writeable;
mod writer;

#[cfg(debug_assertions)]
pub use self::faults::{Call, Faults, Moment};
pub use self::{
    error::{FileError, OpenError},
    options::{Options, Symlinks},
    store::DirStore,
    url::{DirUrl, KIND, UrlError},
    writer::{Durability, FileMode, WriteOptionError, WriteOptions},
};
