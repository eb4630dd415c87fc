//! The conformance suite, which every implementation of the traits passes.
//!
//! A [`Factory`] creates new, empty stores. If their values survive a restart, it implements [`Reopen`] as well.
//! [`conformance_tests!`](crate::conformance_tests) defines a test for each check of the given capabilities:
//!
//! ```
//! use zarrd_store::MemoryStore;
//! use zarrd_store_testkit::Factory;
//!
//! struct Memory;
//!
//! impl Factory for Memory {
//!     type Store = MemoryStore;
//!     type Fixture = ();
//!
//!     async fn create(&self) -> (MemoryStore, ()) {
//!         (MemoryStore::new(), ())
//!     }
//! }
//!
//! zarrd_store_testkit::conformance_tests!(Memory => readable_writeable_listable, snapshots, transactional);
//! ```
//!
//! | capability | requirement |
//! |---|---|
//! | `readable_writeable_listable` | [`Factory`] |
//! | `snapshots` | [`Factory`] of a [`SnapshotStore`](zarrd_store::SnapshotStore) |
//! | `transactional` | [`Factory`] of a [`TransactionalStore`](zarrd_store::TransactionalStore) |
//! | `persistent` | [`Reopen`] |
//! | `persistent_transactional` | [`Reopen`] of a [`TransactionalStore`](zarrd_store::TransactionalStore) |
//! | `faulty` | [`FaultInjection`] of a [`TransactionalStore`](zarrd_store::TransactionalStore) |
//!
//! Each check states the guarantees that it needs. It is skipped for a store that does not declare them
//! ([`Factory::guarantees`]).
//!
//! A store that only reads implements [`ForeignData`], which changes what it reads by other means, and passes the first
//! two rows with the factory [`Foreign`].
//!
//! The functions of the same names return the checks as a [`Suite`], which can be run at once.
//!
//! The checks of `readable_writeable_listable` and `persistent` apply to remote stores as well: if the connection can hide the kind of an
//! error, they accept the kinds that it can turn into.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test suite fails by panicking, and says which checks it skips"
)]

#[macro_use]
mod tools;

mod attributes;
mod cancel;
mod concurrency;
mod faults;
mod foreign;
mod intents;
mod key;
mod list;
mod model;
mod multipart;
mod needs;
mod paging;
mod persistence;
mod precondition;
mod prefix_snapshot;
mod prefixes;
mod puts;
mod range;
mod read;
mod scan;
mod snapshot;
mod snapshot_reads;
mod suite;
mod test_value;
mod transaction;
mod transaction_model;
mod unlisted;
mod upload;
mod watermark;
mod write;

pub use foreign::{Foreign, ForeignData, ForeignStore};
pub use suite::{
    Suite, faulty, persistent, persistent_transactional, readable_writeable_listable, snapshots, transactional,
};
pub use unlisted::Unlisted;

use std::future::Future;

use zarrd_store::{Guarantees, ListableStore, ReadableStore, WriteableStore};

/// A store that reads, writes and lists, as the specification requires. Every check needs one.
///
/// Clones share one store. The trait is implemented for every type with the three capabilities.
pub trait Storage: ReadableStore + WriteableStore + ListableStore + Clone + 'static {}

impl<S: ReadableStore + WriteableStore + ListableStore + Clone + 'static> Storage for S {}

/// Creates the stores under test.
pub trait Factory {
    /// The type of store.
    type Store: Storage;

    /// A resource that must live as long as the store, such as its directory or its server; `()` if it needs none.
    type Fixture;

    /// Creates a new, empty store, independent of all others.
    fn create(&self) -> impl Future<Output = (Self::Store, Self::Fixture)>;

    /// The guarantees of the store: those of commits, unless it declares others.
    fn guarantees(&self, _store: &Self::Store) -> Guarantees {
        Guarantees::COMMITS
    }
}

/// Creates stores whose values survive closing and reopening.
pub trait Reopen: Factory {
    /// Closes the store, which has no other clone, and opens it again.
    fn reopen(&self, store: Self::Store, fixture: Self::Fixture) -> impl Future<Output = (Self::Store, Self::Fixture)>;
}

/// Creates stores on a disk whose syncs can be paused and can fail.
pub trait FaultInjection: Reopen {
    /// Pauses all syncs that make commits durable.
    fn pause_syncs(&self, fixture: &Self::Fixture);

    /// Lets one sync complete, with all commits that it makes durable.
    fn allow_one_sync(&self, fixture: &Self::Fixture);

    /// Resumes all syncs.
    fn resume_syncs(&self, fixture: &Self::Fixture);

    /// Lets all syncs fail, including paused ones, until the store is opened again.
    fn fail_syncs(&self, fixture: &Self::Fixture);
}
