//! The embedded store: a log, an index behind it, and immutable value files, in one directory.
//!
//! ```text
//! DIR/zarrd.json      the store's identity: format, id, kind of index
//! DIR/lock            locked by the process that has the store open; holds its pid
//! DIR/log/            the log: commits that are durable, and not in the index yet
//! DIR/index/          sled's or redb's files; later generations are in index-N/, and
//! DIR/generation      names the current one
//! DIR/clean-shutdown  after a clean stop: checksums of the index's files
//! DIR/values/xx/…     values larger than 4 KiB, a file each
//! DIR/ballast/        blocks that are given back when the disk is full
//! DIR/lost+found/     value files that a crash left and nothing refers to, for a week
//! DIR/incomplete      stands in a store that is being filled
//! ```
//!
//! **Writing.** A value goes to a file of its own, which is synced; values up to 4 KiB are in the record. The committer judges
//! the commits that wait, makes them durable with one sync of the log, inserts them into the memtable and answers. The
//! checkpointer applies memtables to the index, and lets go of the log that they stand for once the index is synced.
//!
//! **Reading.** A key is looked up in the memtables, then in the index, on the calling thread; files are read there too if
//! that takes no disk access, and on the blocking pool otherwise. Every byte is checked against a checksum before it
//! leaves. The first MiB is read before the answer, so that damage there is an error and not a broken stream.
//!
//! **Failing.** After a sync of the log that failed the store is read-only until it is opened again. In any state that a crash
//! or a full disk leaves it opens with all that was acknowledged; what something else has damaged is refused, and left as it is.
//!
//! | module | |
//! |---|---|
//! | `store` | [`LocalStore`], and the traits on it |
//! | `commit` | judging commits, and making them durable in rounds |
//! | `log` | segments, frames, and the files of large commits |
//! | `view` | memtables, and what a reader sees |
//! | `checkpoint` | applying memtables, sweeping, checking and compacting: the one writer of the index |
//! | `keyspace` | where an entry of the index stands |
//! | `index` | sled and redb |
//! | `gc` | removing value files that nothing refers to |
//! | `space` | the reserve and the ballast |
//! | `open` | opening, making, upgrading |
//! | `values` | value files |

mod blocking;
mod check;
mod checkpoint;
mod clean_shutdown;
mod commit;
mod durable;
mod error;
mod faults;
mod gc;
mod index;
mod keys;
mod keyspace;
mod log;
mod open;
mod options;
mod orphans;
mod paths;
mod read_only_flag;
mod record;
mod space;
mod spill;
mod store;
mod values;
mod view;

#[cfg(feature = "test-faults")]
pub use self::faults::SyncFault;
pub use self::{
    check::{CheckReport, CorruptValue},
    checkpoint::{CompactError, CompactProgress, CompactReport},
    error::{FileCorruption, OpenError, ValueCorruption},
    index::IndexKind,
    options::{Access, Options, Purpose},
    store::LocalStore,
};
