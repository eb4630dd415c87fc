//! A cache of pieces of values on a disk of this machine, for stores whose answers take a round trip.
//!
//! [`DiskCache`] is opened in a directory of its own with a size, and is a [`PieceCache`](zarrd_store::PieceCache): a
//! [`PieceStore`](zarrd_store::PieceStore) reads a store through it. What is cached, and when a piece may be used, is up to
//! that store; this crate stores bytes and returns them, or nothing.
//!
//! # Lifecycle of a piece
//!
//! ```text
//!   insert ── too much is being written for a second ──► left out, counted
//!     │
//!     ▼
//!   queue (at most 6 MiB) ── flusher: one block after another ──► block file, index in memory
//!     │                                                             │
//!     ▼                                                             ▼
//!   settled: in the index (written) or not (failed, counted)      get: checksum over key and bytes ── wrong ──► damaged,
//!                                                                   │                                         counted
//!                                                                   └── the block is needed ──► evicted
//! ```
//!
//! - **Block**: a file of 64 MiB, which is the unit of eviction. A piece has at most 1 MiB, so each fits into a block. The
//!   space of all blocks is reserved when the cache is opened: so the disk cannot be full later, and the files together never
//!   take more than the size.
//! - **Key**: store, key, version and index of a piece, all of which are in its entry and compared.
//! - **Index**: a hash for each piece, in memory, about 50 bytes each. The hash of a first piece leaves the version out, so a
//!   new version takes the place of the one before.
//! - **Recovery**: a cache that is opened again finds what was written to the files, after a crash as well. An entry that
//!   was written partly, or changed since, fails its checksum.
//!
//! # Errors
//!
//! A directory that cannot be used is an [`OpenError`]. Afterwards nothing fails: what cannot be read is not in the cache,
//! and what cannot be written is left out. Both are counted, and logged once a minute at most. A disk that does not answer
//! within three seconds is left alone for a minute, and then asked for one piece.
//!
//! # Memory and threads
//!
//! 16 MiB of buffers, at most 6 MiB of pieces that wait to be written, and at most 16 pieces that are being read, each of which
//! takes 2 MiB. The engine's own cache in memory is not used. Files are read and written on up to eight threads of the
//! cache's own, and checksums computed on the thread of the reader.
//!
//! # Modules
//!
//! | module | |
//! |---|---|
//! | `cache` | [`DiskCache`]: opening, reading, inserting, closing |
//! | `entry` | keys and values as the blocks have them, with their checksum |
//! | `directory` | the directory: its lock, what is in it, and the space of the blocks |
//! | `counters` | what is counted, and logged at most once a minute |
//! | `pause` | the time for which a disk that did not answer is left alone |
//! | `error` | why a cache cannot be opened |

mod cache;
mod counters;
mod directory;
mod entry;
mod error;
mod pause;

pub use self::{
    cache::{DiskCache, Options},
    error::OpenError,
};
