//! The one place that decides where work runs.
//!
//! > A request parses a document of 3 KiB: that takes less time than to wake another thread, so it happens at once.
//! > Another one decodes 40 chunks of 8 MiB: each is a job of a thread of low priority, and callers take turns.
//!
//! A job is passed to [`Executor::run`] with its [`Cost`]: what [kind of work](Work) it is, and how much. The table in
//! [`limits`] says for each kind up to which amount it runs at once, on the thread that asks; it is the only place that has
//! such limits. Beyond them a job takes a turn:
//!
//! - **Threads** are shared caller by caller ([`pool`]): two for each processor, and one that is reserved for small jobs. A
//!   thread that ends a job runs the one that gets its place.
//! - **Priorities** are those of runtimes ([`priority`]): normal, crowd, background. A job of more than
//!   [`SMALL_JOB_STEPS`](limits::SMALL_JOB_STEPS) runs in the background. Some kinds of work take their request along, and
//!   requests can [leave](crate::leave()) by themselves; what a request starts afterwards starts there.
//! - **Crowds**: with many clients, requests that are not small leave ([`leave_crowd`]), and short jobs that every response
//!   has several of run in the background, a few at a time ([`run_short`]).
//! - **Futures** that keep a worker busy ([`Executor::run_future`]) run in place, and other tasks of that worker move.
//!
//! What runs elsewhere stays in its request's [step](STEPS) in the log.
//!
//! Work that waits for a disk and takes no processor time is not shared or counted: stores run it with [`run_blocking`].
//! `tokio`'s own functions for all this are denied by Clippy everywhere else.

mod blocking;
mod caller;
mod cost;
mod executor;
pub mod limits;
pub mod pool;
pub mod priority;
mod request;
mod steps;
mod turn;

pub use blocking::{run_blocking, spawn_blocking};
pub use caller::{Caller, Usage};
pub use cost::Cost;
pub use executor::{Executor, ExecutorError, run_in_place};
pub use limits::Work;
pub use priority::{crowd_runtime, lower_priority};
pub use request::{ConnectedClient, leave, leave_crowd, run_request, run_short};
pub use steps::{STEPS, current_step};
