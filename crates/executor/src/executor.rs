//! The executor of jobs.

use std::{future::Future, num::NonZeroUsize, sync::Arc, thread::available_parallelism};

use tokio::runtime::{Handle, RuntimeFlavor};
use zarrd_store::WaitTimes;

use crate::{
    blocking,
    caller::{Caller, Usage},
    cost::Cost,
    limits::{BACKGROUND_NICER, THREAD_TIMEOUT, THREADS_FOR_SMALL_JOBS, THREADS_PER_CORE},
    pool::{PartitionedPool, PoolPermit, Rejection, RequestSize},
    priority,
    request::leave,
    steps::current_step,
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

/// A thread for one job.
#[derive(Debug)]
pub struct JobThread {
    permit: PoolPermit,
    size: RequestSize,
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
        if cost.is_at_once() {
            return Ok(job());
        }
        if cost.moves_request() {
            leave().await;
        }
        self.thread(cost).await?.run(job).await
    }

    /// Waits for a thread for a job that does not run at once.
    pub async fn thread(&self, cost: Cost) -> Result<JobThread, ExecutorError> {
        let size = cost.size();
        let permit = self.threads.take(self.caller, 1, size, THREAD_TIMEOUT).await?;
        Ok(JobThread { permit, size })
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

impl JobThread {
    /// Runs the job, which continues if the future is dropped.
    pub async fn run<T: Send + 'static>(self, job: impl FnOnce() -> T + Send + 'static) -> Result<T, ExecutorError> {
        let Self { permit, size } = self;
        let step = current_step();
        let job = move || {
            let (_permit, _step) = (permit, step.entered());
            job()
        };
        let running = match size {
            RequestSize::Small => blocking::spawn_blocking(job),
            RequestSize::Large => priority::spawn_blocking(job),
        };
        running.await.map_err(|_| ExecutorError::ShuttingDown)
    }
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
    use std::thread;

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
