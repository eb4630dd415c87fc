//! A runtime whose threads have a lower priority, for long work.
//!
//! A small request passes through several threads before it is answered: a worker of the runtime, the blocking pool,
//! the store's committer. On each it needs a core at once, and on a machine whose cores all decode or parse it would
//! get one only after some milliseconds. Long work therefore runs in its own runtime, whose threads the operating
//! system's scheduler preempts for all others: single jobs ([`spawn_blocking`]), and requests that turn out to be large
//! ([`run_request`], [`leave`]), with all jobs that they start afterwards.
//!
//! Small requests compete with each other as well: one that comes when a caller has sent a thousand waits until they
//! are parsed. The connections of such a caller therefore have a runtime of their own, whose priority lies between those
//! of the others ([`crowd_runtime`]).
//!
//! The runtimes belong to the process, like the cores that they compete for, so engines share them. If the current
//! runtime has a single thread, or if the operating system has no thread priorities, requests stay where they are.

use std::{
    cell::Cell,
    future::{Future, pending, poll_fn},
    num::NonZeroUsize,
    panic::resume_unwind,
    pin::pin,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    task::Poll,
};

use tokio::{
    runtime::{Builder, Handle, Runtime, RuntimeFlavor},
    sync::Semaphore,
    task::{JoinHandle, yield_now},
    task_local,
};
use tokio_util::task::AbortOnDropHandle;

/// The name of the threads.
pub(crate) const NAME: &str = "zarrd-background";

/// The increment of the threads' nice value: if cores are short, the operating system's scheduler gives them a
/// ninth of what it gives to others.
pub(crate) const NICER: i32 = 10;

/// The same for connections of callers that have many: a third.
const CROWD_NICER: i32 = 5;

/// The largest nice value.
#[cfg(target_os = "linux")]
const NICEST: i32 = 19;

/// The runtime, from its first use to the end of the process.
static BACKGROUND: LazyLock<Option<Runtime>> = LazyLock::new(|| runtime(NAME, NICER));

/// The runtime for connections of callers that have many, from its first use to the end of the process.
static CROWDS: LazyLock<Option<Runtime>> = LazyLock::new(|| runtime("zarrd-crowd", CROWD_NICER));

/// The number of clients from which on requests that are not small leave: a small one waits for the steps of all others
/// that come at the same time.
const CROWD: usize = 64;

/// The number of clients.
static CLIENTS: AtomicUsize = AtomicUsize::new(0);

/// Permits for [short jobs](run_short): as many as processors.
static SHORT_JOBS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(1, NonZeroUsize::get)));

thread_local! {
    /// The increment of the current thread's nice value, from its runtime.
    static THREAD_NICER: Cell<i32> = const { Cell::new(0) };
}

task_local! {
    /// True once the current request has called [`leave`].
    static LEAVES: Arc<AtomicBool>;
}

/// Runs a request, and moves it to the threads of low priority once it turns out to be large.
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

/// Moves the current request to the threads of low priority, if [`run_request`] started it.
pub async fn leave() {
    if background().is_none() || LEAVES.try_with(|leaves| leaves.swap(true, Relaxed)) != Ok(false) {
        return;
    }
    // It is polled next by the task that it moves to.
    yield_now().await;
}

/// Moves the current request to threads of low priority if there are many clients. For requests that are not small.
pub async fn leave_crowd() {
    if is_crowded() {
        leave().await;
    }
}

/// Runs a short job on a thread of low priority if there are many clients, a few such jobs at a time; else at once.
pub async fn run_short<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
    if !is_crowded() || background().is_none() {
        return job();
    }
    // It is never closed.
    let _turn = SHORT_JOBS.acquire().await;
    finish(spawn_blocking(job)).await
}

fn is_crowded() -> bool {
    CLIENTS.load(Relaxed) >= CROWD
}

/// A client that may send requests, until dropped.
#[derive(Debug)]
#[must_use]
pub struct ConnectedClient(());

impl ConnectedClient {
    /// Counts one more.
    #[allow(clippy::new_without_default, reason = "it counts")]
    pub fn new() -> Self {
        CLIENTS.fetch_add(1, Relaxed);
        Self(())
    }
}

impl Drop for ConnectedClient {
    fn drop(&mut self) {
        CLIENTS.fetch_sub(1, Relaxed);
    }
}

/// The increment of the current thread's nice value: 0 for a thread of normal priority.
pub(crate) fn nicer() -> i32 {
    THREAD_NICER.get()
}

/// Runs a blocking job on a thread of low priority.
pub(crate) fn spawn_blocking<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    match background() {
        Some(background) => background.spawn_blocking(job),
        None => tokio::task::spawn_blocking(job),
    }
}

/// The runtime for connections of a caller that has many: that of other small requests preempts it. The current one if
/// that has a single thread.
pub fn crowd_runtime() -> Handle {
    shared(&CROWDS).cloned().unwrap_or_else(Handle::current)
}

/// The runtime for long work, unless the current one has a single thread.
fn background() -> Option<&'static Handle> {
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

/// The output of a task, which is aborted when the future is dropped.
async fn finish<T>(task: JoinHandle<T>) -> T {
    match pin!(AbortOnDropHandle::new(task)).await {
        Ok(output) => output,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // Only dropping this future aborts it, and the runtime is never shut down.
            Err(_) => pending().await,
        },
    }
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

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread, time::Duration};

    use futures::FutureExt;
    use tokio::task::yield_now;

    use super::*;

    fn is_background() -> bool {
        thread::current().name() == Some(NAME)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn requests_of_crowds_move_to_the_background() {
        let places = || run_request(async { (leave_crowd().await, is_background(), run_short(is_background).await) });
        assert_eq!(places().await, ((), false, false));
        let crowd: Vec<_> = (0..CROWD).map(|_| ConnectedClient::new()).collect();
        assert_eq!(places().await, ((), true, true));
        assert!(run_short(is_background).await, "outside of requests too");
        drop(crowd);
        assert!(!run_short(is_background).await);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn large_request_moves_to_the_background() {
        let places = run_request(async {
            let before = is_background();
            yield_now().await;
            let small = is_background();
            leave().await;
            let large = is_background();
            leave().await;
            let job = tokio::task::spawn_blocking(is_background).await.unwrap();
            let task = tokio::spawn(async { is_background() }).await.unwrap();
            (before, small, large, job, task)
        });
        assert_eq!(places.await, (false, false, true, true, true));
        assert!(!is_background(), "what awaits the request stays");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn request_in_the_background_can_connect() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connected = run_request(async move {
            leave().await;
            let connected = tokio::net::TcpStream::connect(address).await.is_ok();
            (connected, is_background())
        });
        assert_eq!(connected.await, (true, true));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn other_tasks_stay() {
        leave().await;
        assert!(!is_background());
        let task = run_request(async { tokio::spawn(async { (leave().await, is_background()).1 }).await.unwrap() });
        assert!(!task.await, "a task is not the request");
    }

    #[tokio::test]
    async fn single_threaded_runtime_keeps_its_requests() {
        assert!(!run_request(async { (leave().await, is_background()).1 }).await);
        assert!(!spawn_blocking(is_background).await.unwrap());
        assert_eq!(crowd_runtime().id(), Handle::current().id());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn panic_in_the_background_propagates() {
        let request = run_request(async {
            leave().await;
            panic!("on purpose");
        });
        let panic = std::panic::AssertUnwindSafe(request).catch_unwind().await.unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"on purpose"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn dropped_request_is_aborted_in_the_background() {
        struct Sends(mpsc::Sender<bool>);
        impl Drop for Sends {
            fn drop(&mut self) {
                let _ = self.0.send(is_background());
            }
        }
        let (sender, ended) = mpsc::channel();
        let (begins, begun) = tokio::sync::oneshot::channel();
        let request = tokio::spawn(run_request(async move {
            let _sends = Sends(sender);
            leave().await;
            let _ = begins.send(());
            pending::<()>().await;
        }));
        begun.await.unwrap();
        request.abort();
        assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(true));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test(flavor = "multi_thread")]
    async fn background_threads_have_a_lower_priority() {
        let priority = || rustix::process::getpriority_process(None).unwrap();
        let (own, first) = (priority(), spawn_blocking(priority).await.unwrap());
        assert_eq!(first, (own + NICER).min(NICEST));
        let nested = spawn_blocking(move || Handle::current().block_on(spawn_blocking(priority)).unwrap());
        assert_eq!(nested.await.unwrap(), first, "a thread that one of them started");
        let crowd = crowd_runtime().spawn(async move { (priority(), spawn_blocking(priority).await.unwrap()) });
        assert_eq!(crowd.await.unwrap(), ((own + CROWD_NICER).min(NICEST), first));
    }
}
