//! Pools of a countable resource, with a queue for each caller.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt, future::select_ok};
use parking_lot::Mutex;
use tokio::{sync::oneshot, time::timeout};
use zarrd_store::{Wait, WaitTimes};

use super::caller::{Caller, Usage};

/// A pool of a countable resource. Clones are the same pool.
#[derive(Clone, Debug)]
pub struct Pool(Arc<Mutex<State>>);

/// A job that starts with a permit.
pub(crate) trait PermitJob: fmt::Debug + Send + Sync {
    /// Records the wait for the permit, which ends when the job starts.
    fn wait(&self, wait: Wait);

    /// True unless the job has started or was given up.
    fn is_waiting(&self) -> bool;

    /// Starts the job. Releases the permit if it has started or was given up.
    fn start(&self, permit: PoolPermit);
}

/// A pool with a part that is reserved for small requests.
#[derive(Debug)]
pub struct PartitionedPool {
    main: Pool,
    small: Pool,
    /// The times of waits for either part.
    waits: Arc<WaitTimes>,
}

/// The size of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestSize {
    /// Small: may use the reserved part.
    Small,
    /// Large.
    Large,
}

/// The order of a request that does not wait, relative to those that do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// After those that wait.
    Last,
    /// Before them: the caller holds some already, and needs more to finish.
    First,
}

/// An amount taken from a pool. Dropping it releases the amount.
#[derive(Debug)]
pub struct PoolPermit {
    pool: Pool,
    caller: Caller,
    amount: u64,
}

/// The reason why a request was not granted in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Other callers hold the rest.
    PoolExhausted,
    /// The caller holds as much as one caller may while others wait.
    ShareExhausted,
}

/// When a caller is limited to half of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Share {
    /// While others wait.
    WhileOthersWait,
    /// Always, so that there is something left for the next caller. Requests that are under way may grow beyond.
    Always,
}

#[derive(Debug)]
struct State {
    capacity: u64,
    free: u64,
    share: Share,
    /// The amount that each caller holds.
    taken: HashMap<Caller, u64>,
    /// The waiting requests by caller, and the order of the callers' turns. Both have the same callers.
    queues: HashMap<Caller, VecDeque<Waiter>>,
    turns: VecDeque<Caller>,
}

#[derive(Debug)]
struct Waiter {
    amount: u64,
    grant: Grant,
}

/// The recipient of a permit.
#[derive(Debug)]
enum Grant {
    Future(oneshot::Sender<PoolPermit>),
    Job(Arc<dyn PermitJob>),
}

/// True if the first request of a queue can be granted.
enum Admission {
    Granted,
    /// Not before its caller releases some; the next caller's may be.
    CallerHasEnough,
    /// Not before any caller does. Requests behind it wait too, or a large one would wait for ever.
    TooLittle,
}

impl Pool {
    fn new(capacity: u64, share: Share) -> Self {
        let (taken, queues, turns) = (HashMap::new(), HashMap::new(), VecDeque::new());
        Self(Arc::new(Mutex::new(State { capacity, free: capacity, share, taken, queues, turns })))
    }

    /// Takes an amount if it is free and the caller has a turn. More than the capacity counts as the capacity.
    fn try_take(&self, caller: Caller, amount: u64, rank: Priority) -> Option<PoolPermit> {
        let mut state = self.0.lock();
        let amount = amount.min(state.capacity);
        let turn = match rank {
            Priority::Last => state.turns.is_empty(),
            Priority::First => true,
        };
        if !turn || state.has_enough(caller, amount, rank) || amount > state.free {
            return None;
        }
        state.grant(caller, amount);
        Some(PoolPermit { pool: self.clone(), caller, amount })
    }

    /// Takes an amount, waiting for it if necessary.
    async fn take(&self, caller: Caller, amount: u64, patience: Duration) -> Result<PoolPermit, Rejection> {
        if let Some(portion) = self.try_take(caller, amount, Priority::Last) {
            return Ok(portion);
        }
        let (grant, granted) = oneshot::channel();
        self.0.lock().enqueue(caller, Waiter { amount, grant: Grant::Future(grant) });
        // However the wait ends, the next request has its turn.
        let _next = DispatchOnDrop(self);
        self.dispatch();
        match timeout(patience, granted).await {
            Ok(Ok(portion)) => Ok(portion),
            Ok(Err(_)) | Err(_) => Err(self.0.lock().reason(caller)),
        }
    }

    /// Grants requests as long as there is enough.
    fn dispatch(&self) {
        loop {
            let (waiter, portion) = {
                let mut state = self.0.lock();
                let Some((caller, waiter)) = state.next() else { return };
                let amount = waiter.amount.min(state.capacity);
                state.grant(caller, amount);
                (waiter, PoolPermit { pool: self.clone(), caller, amount })
            };
            // A permit whose recipient is gone is dropped, which must happen outside the lock.
            match waiter.grant {
                Grant::Future(grant) => drop(grant.send(portion)),
                Grant::Job(job) => job.start(portion),
            }
        }
    }

    /// Starts a job as soon as there is a permit for it.
    fn enqueue(&self, caller: Caller, job: Arc<dyn PermitJob>) {
        self.0.lock().enqueue(caller, Waiter { amount: 1, grant: Grant::Job(job) });
        self.dispatch();
    }

    fn usage(&self) -> Usage {
        self.0.lock().usage()
    }

    fn release(&self, caller: Caller, amount: u64) {
        if amount == 0 {
            return;
        }
        self.0.lock().release(caller, amount);
        self.dispatch();
    }
}

/// Grants waiting requests when a wait ends.
struct DispatchOnDrop<'a>(&'a Pool);

impl Drop for DispatchOnDrop<'_> {
    fn drop(&mut self) {
        self.0.dispatch();
    }
}

impl State {
    fn enqueue(&mut self, caller: Caller, waiter: Waiter) {
        let queue = self.queues.entry(caller).or_insert_with(|| {
            self.turns.push_back(caller);
            VecDeque::new()
        });
        queue.push_back(waiter);
    }

    /// The first request that can be granted; its caller's next turn is the last.
    fn next(&mut self) -> Option<(Caller, Waiter)> {
        self.remove_cancelled();
        for turn in 0..self.turns.len() {
            let caller = *self.turns.get(turn)?;
            match self.admission(caller) {
                Admission::TooLittle => return None,
                Admission::CallerHasEnough => {}
                Admission::Granted => {
                    self.turns.remove(turn);
                    let queue = self.queues.get_mut(&caller)?;
                    let waiter = queue.pop_front();
                    match queue.is_empty() {
                        true => drop(self.queues.remove(&caller)),
                        false => self.turns.push_back(caller),
                    }
                    return Some((caller, waiter?));
                }
            }
        }
        None
    }

    fn remove_cancelled(&mut self) {
        for queue in self.queues.values_mut() {
            while queue.front().is_some_and(|waiter| waiter.grant.is_gone()) {
                queue.pop_front();
            }
        }
        self.queues.retain(|_, queue| !queue.is_empty());
        let queues = &self.queues;
        self.turns.retain(|caller| queues.contains_key(caller));
    }

    fn admission(&self, caller: Caller) -> Admission {
        let Some(waiter) = self.queues.get(&caller).and_then(VecDeque::front) else {
            return Admission::CallerHasEnough;
        };
        let amount = waiter.amount.min(self.capacity);
        if self.has_enough(caller, amount, Priority::Last) {
            return Admission::CallerHasEnough;
        }
        if amount > self.free { Admission::TooLittle } else { Admission::Granted }
    }

    fn reason(&self, caller: Caller) -> Rejection {
        match self.taken.get(&caller).is_some_and(|&taken| taken >= self.capacity / 2) {
            true => Rejection::ShareExhausted,
            false => Rejection::PoolExhausted,
        }
    }

    /// True if `amount` more would give a caller that holds some more than half, and its share is limited to that now.
    fn has_enough(&self, caller: Caller, amount: u64, rank: Priority) -> bool {
        let taken = self.taken.get(&caller).copied().unwrap_or(0);
        let others_wait = self.turns.iter().any(|other| *other != caller);
        let limited = others_wait || (self.share, rank) == (Share::Always, Priority::Last);
        limited && taken > 0 && taken.saturating_add(amount) > self.capacity.div_ceil(2)
    }

    fn usage(&self) -> Usage {
        let waiting = |queue: &VecDeque<Waiter>| queue.iter().filter(|waiter| !waiter.grant.is_gone()).count() as u64;
        Usage {
            total: self.capacity,
            taken: self.capacity.saturating_sub(self.free),
            waiting: self.queues.values().map(waiting).sum(),
        }
    }

    fn grant(&mut self, caller: Caller, amount: u64) {
        self.free = self.free.saturating_sub(amount);
        let taken = self.taken.entry(caller).or_default();
        *taken = taken.saturating_add(amount);
    }

    fn release(&mut self, caller: Caller, amount: u64) {
        self.free = self.free.saturating_add(amount).min(self.capacity);
        if let Some(taken) = self.taken.get_mut(&caller) {
            *taken = taken.saturating_sub(amount);
            if *taken == 0 {
                self.taken.remove(&caller);
            }
        }
    }
}

impl Grant {
    /// True if nothing waits for the permit any more.
    fn is_gone(&self) -> bool {
        match self {
            Self::Future(grant) => grant.is_closed(),
            Self::Job(job) => !job.is_waiting(),
        }
    }
}

impl PoolPermit {
    /// The amount.
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// Releases the amount.
    fn release(&mut self) {
        self.pool.release(self.caller, std::mem::take(&mut self.amount));
    }

    /// Absorbs another permit of the same caller; returns it if it is from another pool.
    pub fn absorb(&mut self, mut other: Self) -> Option<Self> {
        if !Arc::ptr_eq(&self.pool.0, &other.pool.0) {
            return Some(other);
        }
        self.amount = self.amount.saturating_add(std::mem::take(&mut other.amount));
        None
    }

    /// Splits off a part; less than `amount` if there is less.
    pub fn split(&mut self, amount: u64) -> Self {
        let amount = amount.min(self.amount);
        self.amount -= amount;
        Self { pool: self.pool.clone(), caller: self.caller, amount }
    }
}

impl Drop for PoolPermit {
    fn drop(&mut self) {
        self.release();
    }
}

impl PartitionedPool {
    /// A pool of `capacity`, of which `reserved` is only for small requests. No caller gets more than half of that
    /// part, even if nobody waits: a small request of another finds something there.
    pub fn new(capacity: u64, reserved: u64) -> Self {
        let main = capacity.saturating_sub(reserved).max(1);
        Self {
            main: Pool::new(main, Share::WhileOthersWait),
            small: Pool::new(reserved.max(1), Share::Always),
            waits: Arc::default(),
        }
    }

    /// Takes an amount, waiting if necessary: a small request for whichever part has it first.
    pub async fn take(
        &self,
        caller: Caller,
        amount: u64,
        class: RequestSize,
        patience: Duration,
    ) -> Result<PoolPermit, Rejection> {
        if let Ok(portion) = self.try_take(caller, amount, class, Priority::Last) {
            return Ok(portion);
        }
        let _wait = self.waits.start();
        match class {
            RequestSize::Large => self.main.take(caller, amount, patience).await,
            // The request that is not granted leaves its queue, or gives back what it was granted.
            RequestSize::Small => {
                let parts = [&self.main, &self.small].map(|part| part.take(caller, amount, patience).boxed());
                select_ok(parts).await.map(|(portion, _)| portion)
            }
        }
    }

    /// Starts a job as soon as there is a permit for it, in whichever part has one first if it is small.
    pub(crate) fn start(&self, caller: Caller, class: RequestSize, job: Arc<dyn PermitJob>) {
        if let Ok(permit) = self.try_take(caller, 1, class, Priority::Last) {
            return job.start(permit);
        }
        job.wait(self.waits.start());
        self.main.enqueue(caller, job.clone());
        if class == RequestSize::Small {
            self.small.enqueue(caller, job);
        }
    }

    /// Grants requests as long as there is enough, after one has left its queue.
    pub(crate) fn dispatch(&self) {
        self.main.dispatch();
        self.small.dispatch();
    }

    /// The times of waits.
    pub fn waits(&self) -> &Arc<WaitTimes> {
        &self.waits
    }

    /// Takes an amount if it is free.
    pub fn try_take(
        &self,
        caller: Caller,
        amount: u64,
        class: RequestSize,
        rank: Priority,
    ) -> Result<PoolPermit, Rejection> {
        let main = self.main.try_take(caller, amount, rank);
        let portion = match class {
            RequestSize::Large => main,
            RequestSize::Small => main.or_else(|| self.small.try_take(caller, amount, rank)),
        };
        portion.ok_or_else(|| self.reason(caller))
    }

    /// The most that a large request can have, and the most that a small one can.
    pub fn most(&self) -> (u64, u64) {
        (self.main.usage().total, self.small.usage().total)
    }

    /// The amount that a caller holds of the common part.
    pub fn taken_by(&self, caller: Caller) -> u64 {
        self.main.0.lock().taken.get(&caller).copied().unwrap_or(0)
    }

    /// The usage of both parts together.
    pub fn usage(&self) -> Usage {
        let (main, small) = (self.main.usage(), self.small.usage());
        Usage {
            total: main.total.saturating_add(small.total),
            taken: main.taken.saturating_add(small.taken),
            waiting: main.waiting.saturating_add(small.waiting),
        }
    }

    /// The reason why a request of a caller is not granted.
    pub(crate) fn reason(&self, caller: Caller) -> Rejection {
        self.main.0.lock().reason(caller)
    }

    /// True if all of it is free.
    #[cfg(test)]
    pub fn is_unused(&self) -> bool {
        let unused = |pool: &Pool| {
            let state = pool.0.lock();
            state.free == state.capacity && state.taken.is_empty() && state.queues.is_empty() && state.turns.is_empty()
        };
        unused(&self.main) && unused(&self.small)
    }
}

#[cfg(test)]
mod tests;
