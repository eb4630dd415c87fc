//! The suite that every implementation of the traits passes.
//!
//! A store is tested through a [`Factory`], which makes new, empty stores of its kind. One whose values outlive it
//! implements [`Reopen`] too. Then [`conformance_tests!`](crate::conformance_tests) makes a test of each check of the
//! capabilities that it has:
//!
//! ```
//! use store::{MemoryStore, conformance::Factory};
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
//! store::conformance_tests!(Memory => readable_writeable_listable, transactional);
//! ```
//!
//! | capability | what the factory needs |
//! |---|---|
//! | `readable_writeable_listable` | [`Factory`] |
//! | `transactional` | [`Factory`] of a [`TransactionalStore`](crate::TransactionalStore) |
//! | `persistent` | [`Reopen`] |
//! | `persistent_transactional` | [`Reopen`] of a [`TransactionalStore`](crate::TransactionalStore) |
//! | `faulty` | [`FaultInjection`] of a [`TransactionalStore`](crate::TransactionalStore) |
//!
//! The functions of the same names give the checks as a [`Suite`] instead, to be run in one go.
//!
//! The checks of the first and third row keep to what a remote store can show as well; where the way to it may have
//! hidden an error's kind, they take the kinds that it may have become.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test suite fails by panicking"
)]

#[macro_use]
mod tools;

mod cancel;
mod concurrency;
mod faults;
mod intents;
mod key;
mod list;
mod model;
mod paging;
mod persistence;
mod precondition;
mod prefixes;
mod range;
mod read;
mod snapshot;
mod suite;
mod test_value;
mod transaction;
mod transaction_model;
mod upload;
mod watermark;
mod write;

pub use suite::{Suite, faulty, persistent, persistent_transactional, readable_writeable_listable, transactional};

use std::future::Future;

use crate::{ListableStore, ReadableStore, WriteableStore};

/// A store that reads, writes and lists: what the specification asks of a store, and what any check needs.
///
/// Clones are the same store. Whatever has the three capabilities is one.
pub trait Storage: ReadableStore + WriteableStore + ListableStore + Clone + 'static {}

impl<S: ReadableStore + WriteableStore + ListableStore + Clone + 'static> Storage for S {}

/// Makes the stores that are tested.
pub trait Factory {
    /// The kind of store.
    type Store: Storage;

    /// What has to live as long as a store does: its directory, the server that it asks. `()` where there is nothing.
    type Fixture;

    /// A new, empty store, which shares nothing with another one.
    fn create(&self) -> impl Future<Output = (Self::Store, Self::Fixture)>;
}

/// Makes stores whose values are still there when the store has been closed and opened again.
pub trait Reopen: Factory {
    /// Closes the store, of which no other clone is left, and opens what it leaves behind.
    fn reopen(&self, store: Self::Store, fixture: Self::Fixture) -> impl Future<Output = (Self::Store, Self::Fixture)>;
}

/// Makes stores on a disk whose syncs can be held up and can fail.
pub trait FaultInjection: Reopen {
    /// Lets what makes commits durable wait from now on.
    fn pause_syncs(&self, fixture: &Self::Fixture);

    /// Lets the next commits that wait, as many as are made durable together, go on.
    fn allow_one_sync(&self, fixture: &Self::Fixture);

    /// Lets nothing wait any more.
    fn resume_syncs(&self, fixture: &Self::Fixture);

    /// Lets it fail to make commits durable, those that wait included, until the store is opened again.
    fn fail_syncs(&self, fixture: &Self::Fixture);
}
