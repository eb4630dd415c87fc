//! Requests, which move to threads of low priority once they turn out to be large.

use std::{
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
    sync::Semaphore,
    task::{JoinHandle, yield_now},
    task_local,
};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use crate::{
    cost::Cost,
    limits::CROWD,
    priority::{background, spawn_blocking},
    steps::current_step,
};

/// The number of clients.
static CLIENTS: AtomicUsize = AtomicUsize::new(0);

/// Permits for [short jobs](run_short): as many as processors.
static SHORT_JOBS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(1, NonZeroUsize::get)));

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
        Some(background) => finish(background.spawn(request.instrument(current_step()))).await,
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

/// Moves the current request to threads of low priority if there are many clients, unless its cost says that it is
/// small.
pub async fn leave_crowd(cost: Cost) {
    if !cost.is_at_once() && is_crowded() {
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

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread, time::Duration};

    use futures::FutureExt;
    use tokio::runtime::Handle;

    use super::*;
    use crate::{
        limits::Work,
        priority::{NAME, crowd_runtime},
    };

    fn is_background() -> bool {
        thread::current().name() == Some(NAME)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn requests_of_crowds_move_to_the_background() {
        const CHUNKS: u64 = Work::RequestChunks.limits().at_once.unwrap();
        const LARGE: Cost = Cost::of(Work::RequestChunks, CHUNKS + 1);
        let places =
            || run_request(async { (leave_crowd(LARGE).await, is_background(), run_short(is_background).await) });
        assert_eq!(places().await, ((), false, false));
        let crowd: Vec<_> = (0..CROWD).map(|_| ConnectedClient::new()).collect();
        assert_eq!(places().await, ((), true, true));
        assert!(run_short(is_background).await, "outside of requests too");
        let small = Cost::of(Work::RequestChunks, CHUNKS);
        assert!(!run_request(async move { (leave_crowd(small).await, is_background()).1 }).await, "a small one stays");
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
            let job = crate::spawn_blocking(is_background).await.unwrap();
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
}
