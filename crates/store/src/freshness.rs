//! How old a cached answer may be that a request uses.

use tokio::{task::futures::TaskLocalFuture, task_local, time::Instant};

task_local! {
    /// The earliest time at which the current request lets cached answers have been asked for.
    static NOT_BEFORE: Option<Instant>;
}

/// Runs a request whose reads use no cached answer that was asked for before a time; `None` is any time.
///
/// Only its own reads compare the time: what is cached stays as it is for others, and what these reads find is cached
/// for all. A [snapshot](crate::SnapshotStore) keeps the time under which it was taken, so its reads compare it
/// in whatever task they are made.
pub fn not_before<F: Future>(time: Option<Instant>, request: F) -> TaskLocalFuture<Option<Instant>, F> {
    NOT_BEFORE.scope(time, request)
}

/// The time of the current request, as [`not_before`] has set it.
pub(crate) fn current() -> Option<Instant> {
    NOT_BEFORE.try_with(|time| *time).unwrap_or_default()
}

/// True if the current request may use a cached answer that was asked for at a time.
pub(crate) fn allows(asked: Instant) -> bool {
    current().is_none_or(|time| asked >= time)
}

/// Runs a function under the time of a request.
pub(crate) fn under<T>(time: Option<Instant>, run: impl FnOnce() -> T) -> T {
    NOT_BEFORE.sync_scope(time, run)
}
