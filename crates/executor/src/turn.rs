//! Jobs that wait for a thread, and threads that run one after the other.
//!
//! > Three threads decode, and five more chunks wait. A thread that has decoded one begins the next itself, so that no other
//! > thread is woken, neither to say that there is room nor to use it.

use std::{cell::RefCell, fmt, sync::Arc};

use parking_lot::Mutex;
use tokio::{
    runtime::{Handle, Id},
    sync::oneshot,
};
use zarrd_store::Wait;

use crate::{
    caller::Caller,
    pool::{PartitionedPool, PermitJob, PoolPermit, RequestSize},
};

thread_local! {
    static CURRENT: RefCell<JobRunner> = const { RefCell::new(JobRunner { runtime: None, next: None }) };
}

/// A job that waits for a permit.
pub(crate) struct QueuedJob {
    /// The job, until it starts or is given up.
    waiting: Mutex<Option<WaitingJob>>,
    /// The runtime whose threads run it.
    runtime: Handle,
    size: RequestSize,
}

struct WaitingJob {
    run: Run,
    /// The wait for a permit, if it has one.
    wait: Option<Wait>,
}

type Run = Box<dyn FnOnce(PoolPermit) + Send>;

/// The place of a job in the queues of a pool. Dropping it gives the job up, unless that has started.
pub(crate) struct JobTurn {
    job: Arc<QueuedJob>,
    pool: Arc<PartitionedPool>,
}

/// The jobs of the current thread.
struct JobRunner {
    /// The runtime that the thread belongs to, while it releases the permit of a job that has ended.
    runtime: Option<Id>,
    /// The job that it runs next.
    next: Option<GrantedJob>,
}

struct GrantedJob {
    run: Run,
    permit: PoolPermit,
}

impl QueuedJob {
    /// A job for the threads of a runtime, and what sends its output.
    pub(crate) fn new<T: Send + 'static>(
        (runtime, size): (Handle, RequestSize),
        job: impl FnOnce() -> T + Send + 'static,
        output: oneshot::Sender<T>,
    ) -> Arc<Self> {
        let run = move |permit| {
            let done = job();
            release(permit);
            // The future may be gone.
            drop(output.send(done));
        };
        let waiting = WaitingJob { run: Box::new(run), wait: None };
        Arc::new(Self { waiting: Mutex::new(Some(waiting)), runtime, size })
    }
}

impl PermitJob for QueuedJob {
    fn wait(&self, wait: Wait) {
        if let Some(waiting) = &mut *self.waiting.lock() {
            waiting.wait = Some(wait);
        }
    }

    fn is_waiting(&self) -> bool {
        self.waiting.lock().is_some()
    }

    /// Starts the job on the current thread, if another job has just ended there, else on another one.
    fn start(&self, permit: PoolPermit) {
        let waiting = self.waiting.lock().take();
        let Some(WaitingJob { run, wait: _ended }) = waiting else { return };
        if let Some(granted) = run_next(self.runtime.id(), GrantedJob { run, permit }) {
            spawn(&self.runtime, granted);
        }
    }
}

impl fmt::Debug for QueuedJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueuedJob")
            .field("size", &self.size)
            .field("is_waiting", &self.is_waiting())
            .finish_non_exhaustive()
    }
}

impl JobTurn {
    /// Starts a job on behalf of a caller as soon as there is a permit.
    pub(crate) fn new(pool: Arc<PartitionedPool>, caller: Caller, job: Arc<QueuedJob>) -> Self {
        pool.start(caller, job.size, job.clone());
        Self { job, pool }
    }

    /// True unless the job has started.
    pub(crate) fn is_waiting(&self) -> bool {
        self.job.is_waiting()
    }

    /// Gives the job up. Returns false if it has started.
    pub(crate) fn give_up(&self) -> bool {
        let given_up = self.job.waiting.lock().take();
        let Some(given_up) = given_up else { return false };
        drop(given_up);
        self.pool.dispatch();
        true
    }
}

impl Drop for JobTurn {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// Releases the permit of a job that ends on this thread, which runs the job that gets it.
fn release(permit: PoolPermit) {
    let runtime = Handle::try_current().ok().map(|runtime| runtime.id());
    CURRENT.with_borrow_mut(|current| current.runtime = runtime);
    drop(permit);
    CURRENT.with_borrow_mut(|current| current.runtime = None);
}

/// Makes a job the next of the current thread; returns it if it is for another one.
fn run_next(runtime: Id, granted: GrantedJob) -> Option<GrantedJob> {
    CURRENT.with_borrow_mut(|current| {
        if current.runtime != Some(runtime) || current.next.is_some() {
            return Some(granted);
        }
        current.next = Some(granted);
        None
    })
}

#[allow(clippy::disallowed_methods, reason = "the one place")]
fn spawn(runtime: &Handle, granted: GrantedJob) {
    runtime.spawn_blocking(move || {
        let mut next = Some(granted);
        while let Some(GrantedJob { run, permit }) = next {
            run(permit);
            next = CURRENT.with_borrow_mut(|current| current.next.take());
        }
    });
}
