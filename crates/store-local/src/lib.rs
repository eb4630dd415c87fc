//! The embedded store: an index of small records beside immutable value files, in one directory.
//!
//! ```text
//! DIR/zarrd.json     the store's identity: format, id, kind of index
//! DIR/lock           locked by the process that has the store open; holds its pid
//! DIR/progress       how far the store has come
//! DIR/seal           after a clean stop: checksums of the index's files
//! DIR/index/         sled's or redb's files
//! DIR/values/xx/…    values larger than 4 KiB, a file each
//! DIR/lost+found/    files that a crash left and nothing refers to, for a week
//! ```
//!
//! **Writing.** A value goes to a file of its own, which is synced; the committer then syncs the file's directory,
//! puts a record into the index together with all other commits that wait, syncs the index, acknowledges, and only then
//! removes the files that were replaced. Values up to 4 KiB are in the record.
//!
//! **Reading.** A record is looked up on the calling thread, since the index is small and cached; files are read there too if
//! that takes no disk access, and on the blocking pool otherwise. Every byte is checked against a checksum before it
//! leaves. The first MiB is read before the answer, so that damage there is an error and not a broken stream.
//!
//! **Failing.** After a sync that failed the store is read-only until it is opened again. A start refuses an index that
//! is damaged, or older than the store, and touches nothing then.

mod check;
mod committer;
mod error;
mod failure;
mod index;
mod janitor;
mod open;
mod options;
mod pins;
mod progress;
mod record;
mod snapshot;
mod space;
mod store;
mod values;

use ::store::StoreError;

pub use self::{
    check::{CheckReport, Damaged},
    error::{Damage, OpenError},
    index::IndexKind,
    options::Options,
    store::LocalStore,
};

/// Runs work that may block on the threads that are for it.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down.
            Err(_) => Err(StoreError::Closed),
        },
    }
}
