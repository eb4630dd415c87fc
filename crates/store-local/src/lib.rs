//! The embedded store: a log, an index behind it, and immutable value files, in one directory.
//!
//! [`LocalStore`] implements all store traits. It is opened with [`Options`], and closed with
//! [`close`](LocalStore::close); after a crash, opening it again recovers every acknowledged commit.
//!
//! # Lifecycle of a commit
//!
//! ```text
//!  set / stage                    commit
//!      │ > 4 KiB                    │ check preconditions        committer thread (group commit)
//!      ▼                            ▼
//!  value file ──── reference ──►  log: one frame per group, one sync ──► durable, acknowledged
//!  (synced)                         │
//!                                   ▼
//!                          active memtable ─── freeze ──► frozen memtable
//!                                   │                          │ apply in batches, sync
//!                                   │                          ▼             checkpointer thread
//!                                   │                        index (sled or redb); log segments retired
//!                                   └────────────┬─────────────┘
//!                                                ▼
//!                        view: active memtable, then frozen memtable, then index
//! ```
//!
//! **Writing.** A value is written to a file of its own, which is synced; one of up to 4 KiB is part of its record, and
//! so is a document that may have consolidated metadata, up to 16 KiB. The committer checks the preconditions of all
//! waiting commits, makes the commits durable with one sync of the log, inserts them into the memtable, and acknowledges
//! them. The checkpointer applies memtables to the index and retires their part of the log after the index is synced.
//!
//! **Reading.** A key is looked up in the memtables and then in the index, on the calling thread. Files are read there
//! too if they are cached in memory, and on the blocking thread pool otherwise. Every byte is checked against a
//! checksum before it is returned. The first MiB is read before the result is returned, so that damage in it is an
//! error and not a broken stream.
//!
//! **Retention.** A value file that is replaced or erased is removed when no reader or snapshot needs it (garbage
//! collection). A snapshot that makes no progress, or the oldest if too much is retained, expires.
//!
//! **Failure.** After a failed sync of the log, the store is read-only until it is opened again. After a crash or on a
//! full disk it opens with every acknowledged commit. If something else has damaged it, opening fails and changes
//! nothing.
//!
//! # Files
//!
//! ```text
//! DIR/zarrd.json      the store's identity: format, id, kind of index
//! DIR/zarrd.json.copy a copy of it, for recovering a store
//! DIR/lock            locked by the process that has the store open; contains its pid
//! DIR/log/            the log: durable commits that are not yet in the index
//! DIR/index/          sled's or redb's files; later generations are in index-N/
//! DIR/damaged-index/  an index that was damaged, after a new one was made
//! DIR/generation      the number of the current generation
//! DIR/clean-shutdown  after a clean shutdown: checksums of the index's files
//! DIR/values/xx/…     larger values, a file each
//! DIR/ballast/        disk blocks that are released when the disk is full
//! DIR/scrub           the place of the scrub and what it found
//! DIR/orphans/        unreferenced value files that a crash left, for a week
//! DIR/incomplete      marks a store that is being filled
//! ```
//!
//! # Modules
//!
//! | module | |
//! |---|---|
//! | `store` | [`LocalStore`] and its implementation of the store traits |
//! | `commit` | checking preconditions, and group commit |
//! | `log` | segments, frames, and the files of large commits |
//! | `view` | memtables, and the state that a reader sees |
//! | `checkpoint` | applying memtables, sweeping, verifying and compacting: the only writer of the index |
//! | `keyspace` | the physical keys of the index |
//! | `index` | sled and redb |
//! | `index_pages` | the pages of a damaged index, without the library of the index |
//! | `damage` | what a rebuilt index has in place of lost records |
//! | `gc` | removing unreferenced value files |
//! | `space` | the reserve and the ballast |
//! | `open` | opening, creating and upgrading |
//! | `lock` | the lock of the directory, which tells when its files were replaced |
//! | `scrub` | reading everything again while the store is used |
//! | `values` | value files |
//! | `recover` | reading what is whole of a damaged store, without the index's library |

mod blocking;
mod check;
mod checkpoint;
mod clean_shutdown;
mod commit;
mod damage;
mod directory_form;
mod durable;
mod error;
mod faults;
mod gc;
mod index;
mod index_pages;
mod keyspace;
mod lock;
mod log;
mod log_key;
mod open;
mod options;
mod orphans;
mod paths;
mod read_only_flag;
mod record;
mod recover;
mod regular_file;
mod repair;
mod scrub;
mod space;
mod spill;
mod store;
mod values;
mod view;

#[cfg(debug_assertions)]
pub use self::faults::SyncFault;
pub use self::{
    check::{CheckReport, Checked, CorruptValue, UnreadableIndex},
    checkpoint::{CompactError, CompactProgress, CompactReport},
    directory_form::DirectoryForm,
    error::{FileCorruption, OpenError, ValueCorruption},
    index::IndexKind,
    options::{Access, Options, Purpose, StoreState},
    recover::{Certainty, Loss, RecoverableValue, Recovery},
    store::LocalStore,
};
