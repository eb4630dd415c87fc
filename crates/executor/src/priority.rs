//! Runtimes whose threads have a lower priority.
//!
//! A small request passes through several threads before it is answered: a worker of the runtime, the blocking pool,
//! the store's committer. On each it needs a core at once, and on a machine whose cores all decode or parse it would
//! get one only after some milliseconds. Long work therefore runs in its own runtime, whose threads the operating
//! system's scheduler preempts for all others: single jobs, and [requests that turn out to be
//! large](crate::run_request), with all jobs that they start afterwards.
//!
//! Small requests compete with each other as well: one that comes when a caller has sent a thousand waits until they
//! are parsed. The connections of such a caller therefore have a runtime of their own, whose priority lies between those
//! of the others ([`crowd_runtime`]).
//!
//! The runtimes belong to the process, like the cores that they compete for, so engines share them. If the current
//! runtime has a single thread, or if the operating system has no thread priorities, requests stay where they are.

use std::{cell::Cell, sync::LazyLock};

use tokio::{
    runtime::{Builder, Handle, Runtime, RuntimeFlavor},
    task::JoinHandle,
};

use crate::{
    blocking,
    limits::{BACKGROUND_NICER, CROWD_NICER},
};

/// The name of the background's threads.
pub const NAME: &str = "zarrd-background";

/// The largest nice value.
#[cfg(target_os = "linux")]
const NICEST: i32 = 19;

/// The background, from its first use to the end of the process.
static BACKGROUND: LazyLock<Option<Runtime>> = LazyLock::new(|| runtime(NAME, BACKGROUND_NICER));

/// The runtime for connections of callers that have many, from its first use to the end of the process.
static CROWDS: LazyLock<Option<Runtime>> = LazyLock::new(|| runtime("zarrd-crowd", CROWD_NICER));

thread_local! {
    /// The increment of the current thread's nice value, from its runtime.
    static THREAD_NICER: Cell<i32> = const { Cell::new(0) };
}

/// The increment of the current thread's nice value: 0 for a thread of normal priority.
pub fn nicer() -> i32 {
    THREAD_NICER.get()
}

/// Runs a blocking job on a thread of low priority.
#[allow(clippy::disallowed_methods, reason = "the one place")]
pub(crate) fn spawn_blocking<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    match background() {
        Some(background) => background.spawn_blocking(job),
        None => blocking::spawn_blocking(job),
    }
}

/// The runtime for connections of a caller that has many: other small requests preempt it. The current one if
/// that has a single thread.
pub fn crowd_runtime() -> Handle {
    shared(&CROWDS).cloned().unwrap_or_else(Handle::current)
}

/// The runtime for long work, unless the current one has a single thread.
pub(crate) fn background() -> Option<&'static Handle> {
    shared(&BACKGROUND)
}

/// A runtime of the process, unless the current one has a single thread.
fn shared(runtime: &'static LazyLock<Option<Runtime>>) -> Option<&'static Handle> {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => runtime.as_ref().map(Runtime::handle),
        _ => None,
    }
}

/// A runtime whose threads have a lower priority than the program; `None` if it cannot start them.
fn runtime(name: &str, nicer: i32) -> Option<Runtime> {
    let lower = lower_priority(nicer);
    let start = move || {
        THREAD_NICER.set(nicer);
        lower();
    };
    // Stores connect to their servers from wherever a request runs.
    let runtime = Builder::new_multi_thread().thread_name(name).on_thread_start(start).enable_all().build();
    runtime.inspect_err(|error| tracing::warn!(%error, name, "no threads of low priority")).ok()
}

/// Lowers the priority of a new thread by `nicer`, the increment of its nice value. Threads inherit the priority of those
/// that start them, so it is determined once, from that of the program.
#[cfg(target_os = "linux")]
pub fn lower_priority(nicer: i32) -> impl Fn() {
    use rustix::process::{getpriority_process, setpriority_process};

    // On Linux these are of the calling thread alone.
    let nice = getpriority_process(None).map(|nice| nice.saturating_add(nicer).min(NICEST));
    move || {
        if let Err(error) = nice.and_then(|nice| setpriority_process(None, nice)) {
            tracing::warn!(%error, "cannot lower the priority of a thread");
        }
    }
}

/// Leaves the priority unchanged.
#[cfg(not(target_os = "linux"))]
pub fn lower_priority(_nicer: i32) -> impl Fn() {
    || ()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn background_threads_have_a_lower_priority() {
        let priority = || rustix::process::getpriority_process(None).unwrap();
        let (own, first) = (priority(), spawn_blocking(priority).await.unwrap());
        assert_eq!(first, (own + BACKGROUND_NICER).min(NICEST));
        let nested = spawn_blocking(move || Handle::current().block_on(spawn_blocking(priority)).unwrap());
        assert_eq!(nested.await.unwrap(), first, "a thread that one of them started");
        let crowd = crowd_runtime().spawn(async move { (priority(), spawn_blocking(priority).await.unwrap()) });
        assert_eq!(crowd.await.unwrap(), ((own + CROWD_NICER).min(NICEST), first));
    }
}
