//! The executor of jobs.

use std::{
    convert::Infallible,
    future::{Future, pending},
    num::NonZeroUsize,
    pin::pin,
    sync::Arc,
    thread::available_parallelism,
};

use futures::future::{Either, select};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::oneshot::{self, error::RecvError},
    time::sleep,
};
use zarrd_store::WaitTimes;

use crate::{
    caller::{Caller, Usage},
    cost::Cost,
    limits::{BACKGROUND_NICER, THREAD_TIMEOUT, THREADS_FOR_SMALL_JOBS, THREADS_PER_CORE},
    pool::{PartitionedPool, Rejection, RequestSize},
    priority,
    request::leave,
    steps::current_step,
    turn::{JobTurn, QueuedJob},
};

/// Runs jobs on behalf of a caller: at once, or in turn with other callers' jobs. Clones share the threads.
#[derive(Clone, Debug)]
pub struct Executor {
    /// The permits of jobs on threads.
    threads: Arc<PartitionedPool>,
    cores: usize,
    caller: Caller,
}

/// Errors of the executor: the job did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecutorError {
    /// Other callers had all threads for too long.
    #[error("all threads are busy")]
    Busy,
    /// The caller had as many threads as one may have, for too long.
    #[error("the caller has as many threads as one may have")]
    ShareExhausted,
    /// The program is shutting down, or the job panicked.
    #[error("the job was not completed")]
    ShuttingDown,
}

impl Executor {
    /// An executor with threads of its own, for an unknown caller.
    pub fn new() -> Self {
        let cores = available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = (cores as u64).saturating_mul(THREADS_PER_CORE);
        let threads = Arc::new(PartitionedPool::new(threads, THREADS_FOR_SMALL_JOBS));
        Self { threads, cores, caller: Caller::UNKNOWN }
    }

    /// The same executor on behalf of a caller.
    #[must_use]
    pub fn for_caller(&self, caller: Caller) -> Self {
        Self { caller, ..self.clone() }
    }

    /// Runs a job: at once if it takes less than a switch to another thread is worth, else on a thread in turn; a large one
    /// in the background. A job that is running continues if the future is dropped.
    pub async fn run<T: Send + 'static>(
        &self,
        cost: Cost,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ExecutorError> {
        match self.run_unless(cost, pending::<Infallible>(), job).await? {
            Either::Left(never) => match never {},
            Either::Right(output) => Ok(output),
        }
    }

    /// Runs a job like [`run`](Self::run), unless a future is ready before it starts.
    pub async fn run_unless<T: Send + 'static, R>(
        &self,
        cost: Cost,
        ready: impl Future<Output = R>,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Either<R, T>, ExecutorError> {
        if cost.is_at_once() {
            return Ok(Either::Right(job()));
        }
        if cost.moves_request() {
            leave().await;
        }
        let (sender, mut output) = oneshot::channel();
        let step = current_step();
        let queued = QueuedJob::new((runtime(cost), cost.size()), move || step.in_scope(job), sender);
        let turn = JobTurn::new(self.threads.clone(), self.caller, queued);
        if turn.is_waiting() {
            let (ready, timeout) = (pin!(ready), pin!(sleep(THREAD_TIMEOUT)));
            match select(&mut output, select(ready, timeout)).await {
                Either::Left((output, _)) => return completed(output),
                Either::Right((ended, _)) if turn.give_up() => {
                    return match ended {
                        Either::Left((ready, _)) => Ok(Either::Left(ready)),
                        Either::Right(_) => Err(self.threads.reason(self.caller).into()),
                    };
                }
                // It has started.
                Either::Right(_) => {}
            }
        }
        completed(output.await)
    }

    /// Runs a future that keeps its worker busy: at once if it is short. Else it is run in place, in turn with the jobs of
    /// others, after its request moved to the background, so that a walk over a large tree delays no small request. It must
    /// not wait for memory.
    pub async fn run_future<T>(&self, cost: Cost, busy: impl Future<Output = T>) -> Result<T, ExecutorError> {
        if cost.is_at_once() {
            return Ok(busy.await);
        }
        leave().await;
        let _turn = self.threads.take(self.caller, 1, RequestSize::Large, THREAD_TIMEOUT).await?;
        Ok(block_in_place(busy).await)
    }

    /// The number of processors.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// The usage of the threads.
    pub fn usage(&self) -> Usage {
        self.threads.usage()
    }

    /// The times of waits for a thread.
    pub fn waits(&self) -> &Arc<WaitTimes> {
        self.threads.waits()
    }
}

impl Default for Executor {
    fn default() -> Self {
        Self::new()
    }
}

/// The runtime whose threads run a job.
fn runtime(cost: Cost) -> Handle {
    let background = match cost.size() {
        RequestSize::Small => None,
        RequestSize::Large => priority::background().cloned(),
    };
    background.unwrap_or_else(Handle::current)
}

fn completed<R, T>(output: Result<T, RecvError>) -> Result<Either<R, T>, ExecutorError> {
    output.map(Either::Right).map_err(|_| ExecutorError::ShuttingDown)
}

impl Cost {
    /// The increment of the nice value of a thread that runs such a job for the current task.
    pub fn nicer(self) -> i32 {
        match self.size() {
            RequestSize::Small => priority::nicer(),
            RequestSize::Large => BACKGROUND_NICER,
        }
    }
}

/// Runs a job of which parts are borrowed: at once if it is short, else in place, after its request moved to the
/// background. It takes no turn, since others wait for what it does.
pub async fn run_in_place<T>(cost: Cost, job: impl FnOnce() -> T) -> T {
    if cost.is_at_once() {
        return job();
    }
    leave().await;
    block_in_place(async { job() }).await
}

/// Polls a future that keeps its worker busy for long: other tasks of the same worker move to another thread. A runtime
/// with a single thread has none to move them to.
#[allow(clippy::disallowed_methods, reason = "the one place")]
async fn block_in_place<T>(busy: impl Future<Output = T>) -> T {
    let runtime = Handle::current();
    match runtime.runtime_flavor() {
        RuntimeFlavor::MultiThread => tokio::task::block_in_place(|| runtime.block_on(busy)),
        _ => busy.await,
    }
}

impl From<Rejection> for ExecutorError {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::PoolExhausted => Self::Busy,
            Rejection::ShareExhausted => Self::ShareExhausted,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            atomic::{AtomicUsize, Ordering::Relaxed},
            mpsc,
        },
        thread::{self, ThreadId},
        time::Duration,
    };

    use futures::{
        FutureExt,
        future::{join, join_all},
    };
    use tokio::task::JoinHandle;

    use super::*;
    use crate::{
        limits::{SMALL_JOB_STEPS, Work},
        request::run_request,
    };

    fn is_background() -> bool {
        thread::current().name() == Some(priority::NAME)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn large_jobs_run_in_the_background() {
        let executor = Executor::new();
        let job = |steps| executor.run(Cost::codec(steps), is_background);
        assert!(!job(SMALL_JOB_STEPS).await.unwrap());
        assert!(job(SMALL_JOB_STEPS + 1).await.unwrap());
    }

    /// An executor with one thread for large jobs.
    fn one_thread() -> Executor {
        Executor { threads: Arc::new(PartitionedPool::new(2, 1)), ..Executor::new() }
    }

    const LARGE: Cost = Cost::codec(SMALL_JOB_STEPS + 1);

    /// A job that runs until `end` is sent to, and has started.
    async fn blocked(executor: &Executor) -> (mpsc::Sender<()>, JoinHandle<Result<ThreadId, ExecutorError>>) {
        let (end, ends) = mpsc::channel();
        let (starts, started) = oneshot::channel();
        let executor = executor.clone();
        let job = move || (starts.send(()), ends.recv(), thread::current().id()).2;
        let running = tokio::spawn(async move { executor.run(LARGE, job).await });
        started.await.unwrap();
        (end, running)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn thread_that_ends_a_job_runs_the_next_one() {
        let executor = one_thread();
        let (end, first) = blocked(&executor).await;
        let threads = (0..8).map(|_| executor.run(LARGE, || thread::current().id()));
        let mut threads = join_all(threads).boxed();
        assert!((&mut threads).now_or_never().is_none());
        end.send(()).unwrap();
        let first = first.await.unwrap().unwrap();
        assert!(threads.await.into_iter().all(|thread| thread.unwrap() == first));
        assert_eq!(executor.usage(), Usage { total: 2, taken: 0, waiting: 0 });
        assert_eq!(executor.waits().totals().count, 8);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn job_that_panics_lets_the_next_one_run() {
        let executor = one_thread();
        let (end, first) = blocked(&executor).await;
        let panics = executor.run(LARGE, || panic!("on purpose"));
        let mut rest = join(panics, executor.run(LARGE, || 3)).boxed();
        assert!((&mut rest).now_or_never().is_none());
        end.send(()).unwrap();
        assert!(first.await.unwrap().is_ok());
        assert_eq!(rest.await, (Err::<(), _>(ExecutorError::ShuttingDown), Ok(3)));
        assert_eq!(executor.usage().taken, 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn job_that_waits_is_given_up_when_its_future_is_dropped_or_another_is_ready() {
        let executor = one_thread();
        let (end, first) = blocked(&executor).await;
        let ran = Arc::new(AtomicUsize::new(0));
        let job = || {
            let ran = ran.clone();
            move || ran.fetch_add(1, Relaxed)
        };
        let mut dropped = executor.run(LARGE, job()).boxed();
        assert!((&mut dropped).now_or_never().is_none());
        let (ready, becomes_ready) = oneshot::channel();
        let mut other = executor.run_unless(LARGE, becomes_ready, job()).boxed();
        assert!((&mut other).now_or_never().is_none());
        assert_eq!(executor.usage().waiting, 2);
        drop(dropped);
        ready.send("ready").unwrap();
        assert!(matches!(other.await, Ok(Either::Left(Ok("ready")))));
        assert_eq!(executor.usage().waiting, 0);
        end.send(()).unwrap();
        assert!(first.await.unwrap().is_ok());
        assert_eq!(executor.run(LARGE, job()).await, Ok(0));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn job_that_has_started_ends_whatever_is_ready() {
        let executor = one_thread();
        let (end, first) = blocked(&executor).await;
        let (starts, started) = oneshot::channel();
        let job = move || (starts.send(()), thread::sleep(Duration::from_millis(50)), 7).2;
        let mut second = executor.run_unless(LARGE, started, job).boxed();
        assert!((&mut second).now_or_never().is_none(), "it waits for a thread");
        end.send(()).unwrap();
        assert!(matches!(second.await, Ok(Either::Right(7))));
        assert!(first.await.unwrap().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn job_without_a_thread_for_too_long_fails() {
        let executor = one_thread();
        let permit = executor.threads.take(executor.caller, 1, RequestSize::Large, THREAD_TIMEOUT).await.unwrap();
        let other = executor.for_caller(Caller::new(7));
        assert_eq!(executor.run(LARGE, || ()).await, Err(ExecutorError::ShareExhausted));
        assert_eq!(other.run(LARGE, || ()).await, Err(ExecutorError::Busy));
        drop(permit);
        assert_eq!(other.run(LARGE, || 5).await, Ok(5));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn no_codec_runs_on_the_thread_that_asks() {
        let here = thread::current().id();
        assert_ne!(Executor::new().run(Cost::codec(0), || thread::current().id()).await.unwrap(), here);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn requests_with_many_lookups_or_large_documents_move_to_the_background() {
        let most = |work: Work| work.limits().at_once.unwrap();
        let lookups = |keys| {
            run_request(async move {
                Executor::new().run_future(Cost::of(Work::Lookups, keys), async {}).await.unwrap();
                is_background()
            })
        };
        assert!(!lookups(most(Work::Lookups)).await);
        assert!(lookups(most(Work::Lookups) + 1).await);
        let tree = |bytes| {
            run_request(async move {
                let cost = Cost::of(Work::Tree, bytes);
                let job = Executor::new().run(cost, || thread::current().id()).await.unwrap();
                (job == thread::current().id(), is_background())
            })
        };
        let steps = Work::Tree.limits().steps;
        assert_eq!(tree(most(Work::Tree)).await, (true, false));
        assert_eq!(tree(most(Work::Tree) + 1).await, (false, false));
        assert_eq!(tree(SMALL_JOB_STEPS / steps).await, (false, false));
        assert_eq!(tree(SMALL_JOB_STEPS / steps + 1).await, (false, true));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn work_in_place_takes_its_request_to_the_background_if_it_is_long() {
        let limit = Work::ConsolidatedMetadata.limits().at_once.unwrap();
        let place = |bytes| run_request(run_in_place(Cost::of(Work::ConsolidatedMetadata, bytes), is_background));
        assert!(!place(limit).await);
        assert!(place(limit + 1).await);
    }
}
