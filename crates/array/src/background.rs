//! Threads of a lower priority, for what takes long.
//!
//! A small request passes through several threads before it is answered: a worker of the runtime, the blocking pool, the
//! store's committer. Each time it needs a core at once, and on a machine whose cores all decode or parse it would get
//! one only after some milliseconds. What takes long therefore runs in a runtime of its own, whose threads the scheduler
//! of the system preempts for all others: single jobs ([`spawn_blocking`]), and requests that turn out to be large
//! ([`run_request`], [`leave`]), with all the jobs that they start from there.
//!
//! A runtime with a single thread keeps its work, and so does a system that knows no priority of a thread.

use std::{
    future::{Future, pending, poll_fn},
    panic::resume_unwind,
    pin::pin,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::Poll,
};

use tokio::{
    runtime::{Builder, Handle, Runtime, RuntimeFlavor},
    task::{JoinHandle, yield_now},
    task_local,
};
use tokio_util::task::AbortOnDropHandle;

/// The nice value of the threads: the scheduler gives them a ninth of what it gives to others.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// The runtime, from its first use to the end of the process.
static BACKGROUND: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let runtime =
        Builder::new_multi_thread().thread_name("zarrd-background").on_thread_start(lower_priority).enable_time().build();
    runtime.inspect_err(|error| tracing::warn!(%error, "large requests have no threads of their own")).ok()
});

task_local! {
    /// True once the request being polled is to leave the threads of small ones.
    static LEAVES: Arc<AtomicBool>;
}

/// Runs a request: from where it turns out to be large, on the threads of low priority.
pub async fn run_request<T: Send + 'static>(request: impl Future<Output = T> + Send + 'static) -> T {
    let leaves = Arc::new(AtomicBool::new(false));
    let mut request = Box::pin(LEAVES.scope(leaves.clone(), request));
    let done = poll_fn(|context| match request.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if leaves.load(Relaxed) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    if let Some(done) = done.await {
        return done;
    }
    match background() {
        Some(background) => finish(background.spawn(request)).await,
        None => request.await,
    }
}

/// Has the request that is being polled go on with low priority, if it was started by [`run_request`].
pub(crate) async fn leave() {
    if background().is_none() || LEAVES.try_with(|leaves| leaves.swap(true, Relaxed)) != Ok(false) {
        return;
    }
    // What polls it next is the task that it moves to.
    yield_now().await;
}

/// Runs a job on a thread that may block and has a low priority.
pub(crate) fn spawn_blocking<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    match background() {
        Some(background) => background.spawn_blocking(job),
        None => tokio::task::spawn_blocking(job),
    }
}

/// The runtime for large requests, if the current one has several threads and is another.
fn background() -> Option<&'static Handle> {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => BACKGROUND.as_ref().map(Runtime::handle),
        _ => None,
    }
}

/// The output of a task, which ends when this is dropped.
async fn finish<T>(task: JoinHandle<T>) -> T {
    match pin!(AbortOnDropHandle::new(task)).await {
        Ok(output) => output,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // Nothing else aborts it, and the runtime has no end.
            Err(_) => pending().await,
        },
    }
}

#[cfg(target_os = "linux")]
fn lower_priority() {
    // On Linux this is the priority of the calling thread alone.
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::warn!(%error, "a thread for large requests keeps its priority");
    }
}

#[cfg(not(target_os = "linux"))]
fn lower_priority() {}
