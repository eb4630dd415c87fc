//! The memory budget, and the claim that each request has on it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;
use zarrd_executor::{
    Caller, Usage,
    pool::{PartitionedPool, PoolPermit, Priority, Rejection, RequestSize},
};
use zarrd_store::WaitTimes;

use super::error::MemoryError;

/// The unit in which memory is counted, in bytes.
const UNIT: u64 = 1 << 10;

/// The size in bytes up to which a request is small, and may use the part that is reserved for small requests.
const SMALL_CLAIM: u64 = 4 << 20;

/// The fraction of the memory that is reserved for small requests: a sixteenth.
const RESERVED_FOR_SMALL: u64 = 16;

/// The memory that all requests together may hold. Clones are the same budget.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<Budget>);

#[derive(Debug)]
struct Budget {
    memory: PartitionedPool,
    /// The most that one request can have, and the size up to which it is small, in units.
    most: u64,
    small_limit: u64,
    patience: Duration,
}

/// The claim of one request on memory: its caller, what it holds, and whether it may wait. Clones are the same claim.
///
/// All memory that a request holds is taken through its claim, which enforces the one rule: a request that holds memory
/// never waits for more.
#[derive(Clone, Debug)]
pub struct Claim(Arc<ClaimInner>);

#[derive(Debug)]
struct ClaimInner {
    budget: MemoryBudget,
    caller: Caller,
    standing: Mutex<ClaimState>,
}

/// The state of a claim.
#[derive(Debug)]
struct ClaimState {
    /// The units that it holds.
    taken: u64,
    /// The number of guards that forbid it to wait.
    locks: usize,
    right: WaitRight,
}

/// The right to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitRight {
    /// The time that may still be waited in all.
    Left(Duration),
    /// A wait is in progress; nothing is taken meanwhile.
    InUse,
}

/// Memory that a request holds. Dropping it releases the memory.
#[derive(Debug)]
pub struct Permit {
    /// The parts from the common pool and from the one reserved for small requests.
    portions: Vec<PoolPermit>,
    claim: Claim,
}

/// Forbids a claim to wait until it is dropped.
#[derive(Debug)]
pub(crate) struct NoWaitGuard(Claim);

/// True if a request can do without the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestKind {
    /// It fails without it.
    Must,
    /// It can do without.
    May,
}

/// A wait for memory. The right to wait is reduced by its duration, however it ends.
struct WaitTicket<'a> {
    claim: &'a Claim,
    most: Duration,
    begun: Instant,
}

impl MemoryBudget {
    /// A budget of `bytes`, for which a request waits for `patience` in all.
    pub(crate) fn new(bytes: u64, patience: Duration) -> Self {
        let memory = PartitionedPool::new(units(bytes), units(bytes / RESERVED_FOR_SMALL));
        let (most, reserved) = memory.most();
        Self(Arc::new(Budget { memory, most, small_limit: units(SMALL_CLAIM).min(reserved), patience }))
    }

    /// The claim of a new request.
    pub fn claim(&self, caller: Caller) -> Claim {
        let standing = Mutex::new(ClaimState { taken: 0, locks: 0, right: WaitRight::Left(self.0.patience) });
        Claim(Arc::new(ClaimInner { budget: self.clone(), caller, standing }))
    }

    /// The most that one request can have, in bytes: all but the part that is reserved for small requests.
    pub fn max_per_request(&self) -> u64 {
        bytes(self.0.most)
    }

    /// The times that requests waited.
    pub(crate) fn waits(&self) -> &Arc<WaitTimes> {
        self.0.memory.waits()
    }

    /// The bytes in all, those that are taken, and the number of requests that wait.
    pub fn usage(&self) -> Usage {
        let Usage { total, taken, waiting } = self.0.memory.usage();
        Usage { total: bytes(total), taken: bytes(taken), waiting }
    }
}

impl Claim {
    /// Takes memory: at once if it is free, else after waiting, if the request holds nothing and has patience left.
    pub async fn take(&self, bytes: u64) -> Result<Permit, MemoryError> {
        let units = units(bytes).max(1);
        let refused = match self.take_now(units) {
            Ok(permit) => return Ok(permit),
            Err(refused @ MemoryError::TooMuch { .. }) => return Err(refused),
            Err(refused) => refused,
        };
        let Some(wait) = WaitTicket::begin(self) else { return Err(refused) };
        let Budget { memory, small_limit, .. } = &*self.budget().0;
        let class = if units <= *small_limit { RequestSize::Small } else { RequestSize::Large };
        let portion = memory.take(self.0.caller, units, class, wait.most).await;
        let portion = portion.map_err(|refused| self.error(refused, units))?;
        wait.succeed(portion.amount());
        Ok(self.permit(portion))
    }

    /// Takes memory if it is free.
    pub fn try_take(&self, bytes: u64) -> Result<Permit, MemoryError> {
        self.take_now(units(bytes).max(1))
    }

    /// Takes optional memory, if it is free and no one waits.
    pub(crate) fn try_more(&self, bytes: u64) -> Result<Permit, MemoryError> {
        self.take_more(units(bytes).max(1), RequestKind::May).map(|portion| self.permit(portion))
    }

    /// Forbids the claim to wait until the guard is dropped: for requests that hold a lock for which others wait.
    pub(crate) fn no_waiting(&self) -> NoWaitGuard {
        let mut standing = self.0.standing.lock();
        standing.locks = standing.locks.saturating_add(1);
        NoWaitGuard(self.clone())
    }

    /// Forbids the claim to wait from now on.
    pub fn never_wait(&self) {
        let mut standing = self.0.standing.lock();
        if standing.right != WaitRight::InUse {
            standing.right = WaitRight::Left(Duration::ZERO);
        }
    }

    /// The budget of the claim.
    pub fn budget(&self) -> &MemoryBudget {
        &self.0.budget
    }

    pub(crate) fn caller(&self) -> Caller {
        self.0.caller
    }

    fn take_now(&self, units: u64) -> Result<Permit, MemoryError> {
        self.take_more(units, RequestKind::Must).map(|portion| self.permit(portion))
    }

    fn take_more(&self, units: u64, need: RequestKind) -> Result<PoolPermit, MemoryError> {
        let Budget { memory, most, small_limit, .. } = &*self.budget().0;
        let mut standing = self.0.standing.lock();
        let needed = standing.taken.saturating_add(units);
        if needed > *most {
            return Err(MemoryError::TooMuch { needed: bytes(needed), limit: bytes(*most) });
        }
        if standing.right == WaitRight::InUse {
            return Err(self.error(Rejection::PoolExhausted, units));
        }
        // The reserved part is for requests that are small in all.
        let class =
            if need == RequestKind::Must && needed <= *small_limit { RequestSize::Small } else { RequestSize::Large };
        let rank = if need == RequestKind::Must && standing.taken > 0 { Priority::First } else { Priority::Last };
        let portion = memory.try_take(self.0.caller, units, class, rank);
        let portion = portion.map_err(|refused| self.error(refused, units))?;
        standing.taken = needed;
        Ok(portion)
    }

    fn permit(&self, portion: PoolPermit) -> Permit {
        Permit { portions: vec![portion], claim: self.clone() }
    }

    fn error(&self, refused: Rejection, units: u64) -> MemoryError {
        let memory = &self.budget().0.memory;
        let (Usage { total, taken, .. }, needed) = (memory.usage(), bytes(units));
        match refused {
            Rejection::PoolExhausted => {
                MemoryError::Busy { needed, free: bytes(total.saturating_sub(taken)), total: bytes(total) }
            }
            Rejection::ShareExhausted => MemoryError::TooManyRequests {
                needed,
                used: bytes(memory.taken_by(self.0.caller)),
                total: bytes(total),
            },
        }
    }
}

impl Permit {
    /// The size in bytes.
    pub fn bytes(&self) -> u64 {
        bytes(self.units())
    }

    /// Grows to at least `bytes`, if they are free: a request that holds memory does not wait for more.
    pub fn grow_to(&mut self, bytes: u64) -> Result<(), MemoryError> {
        let all = units(bytes);
        let missing = all.saturating_sub(self.units());
        if missing == 0 {
            return Ok(());
        }
        let more = self.claim.take_more(missing, RequestKind::Must)?;
        self.put(more);
        Ok(())
    }

    /// Takes more, if it is free without the part reserved for small requests.
    pub(crate) fn try_grow(&mut self, bytes: u64) -> Result<(), MemoryError> {
        let more = self.claim.take_more(units(bytes), RequestKind::May)?;
        self.put(more);
        Ok(())
    }

    /// Splits off a part; less than `bytes` if there is less.
    pub fn split(&mut self, bytes: u64) -> Self {
        let mut left = units(bytes);
        let mut portions = Vec::with_capacity(self.portions.len());
        for portion in &mut self.portions {
            let part = portion.split(left);
            left = left.saturating_sub(part.amount());
            portions.push(part);
        }
        Self { portions, claim: self.claim.clone() }
    }

    /// Releases all but `bytes`.
    pub fn shrink_to(&mut self, bytes: u64) {
        let remaining = self.split(bytes);
        drop(std::mem::replace(self, remaining));
    }

    /// Attaches the memory to bytes; it is released with their last use.
    pub fn attach_to(self, bytes: impl Into<Bytes>) -> Bytes {
        attach(bytes.into(), self)
    }

    /// The claim that took it.
    pub(crate) fn claim(&self) -> &Claim {
        &self.claim
    }

    fn units(&self) -> u64 {
        self.portions.iter().map(PoolPermit::amount).fold(0, u64::saturating_add)
    }

    fn put(&mut self, more: PoolPermit) {
        let mut rest = Some(more);
        for portion in &mut self.portions {
            rest = rest.and_then(|more| portion.absorb(more));
        }
        self.portions.extend(rest);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let units = self.units();
        // Release the memory before the claim forgets it, so that the claim is never too small.
        self.portions.clear();
        let mut standing = self.claim.0.standing.lock();
        standing.taken = standing.taken.saturating_sub(units);
    }
}

impl Drop for NoWaitGuard {
    fn drop(&mut self) {
        let mut standing = self.0.0.standing.lock();
        standing.locks = standing.locks.saturating_sub(1);
    }
}

impl<'a> WaitTicket<'a> {
    /// Starts a wait, if the claim may.
    fn begin(claim: &'a Claim) -> Option<Self> {
        let mut standing = claim.0.standing.lock();
        match standing.right {
            WaitRight::Left(most) if standing.taken == 0 && standing.locks == 0 && !most.is_zero() => {
                standing.right = WaitRight::InUse;
                Some(Self { claim, most, begun: Instant::now() })
            }
            _ => None,
        }
    }

    /// Ends the wait with memory granted.
    fn succeed(self, units: u64) {
        self.claim.0.standing.lock().taken = units;
    }
}

impl Drop for WaitTicket<'_> {
    fn drop(&mut self) {
        let left = self.most.saturating_sub(self.begun.elapsed());
        self.claim.0.standing.lock().right = WaitRight::Left(left);
    }
}

/// Attaches a guard to bytes, which is dropped with their last use.
pub(crate) fn attach<G: Send + 'static>(bytes: Bytes, guard: G) -> Bytes {
    Bytes::from_owner(BytesWithGuard { bytes, _guard: guard })
}

struct BytesWithGuard<G> {
    bytes: Bytes,
    _guard: G,
}

impl<G> AsRef<[u8]> for BytesWithGuard<G> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Bytes in units, rounded up.
fn units(bytes: u64) -> u64 {
    bytes.div_ceil(UNIT)
}

/// Units in bytes.
fn bytes(units: u64) -> u64 {
    units.saturating_mul(UNIT)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;

    use super::*;

    const MIB: u64 = 1 << 20;
    const TIMEOUT: Duration = Duration::from_secs(10);
    const ONE: Caller = Caller::new(1);
    const TWO: Caller = Caller::new(2);

    /// 15 MiB for all requests, and 1 MiB reserved for small ones.
    fn budget() -> MemoryBudget {
        MemoryBudget::new(16 * MIB, TIMEOUT)
    }

    #[tokio::test(start_paused = true)]
    async fn claim_without_memory_waits_until_the_timeout() {
        let budget = budget();
        let others = budget.claim(ONE).take(15 * MIB).await.unwrap();
        let begun = Instant::now();
        let claim = budget.claim(TWO);
        let error = claim.take(2 * MIB).await.unwrap_err();
        assert_eq!(error, MemoryError::Busy { needed: 2 * MIB, free: MIB, total: 16 * MIB });
        assert_eq!(begun.elapsed(), TIMEOUT);
        claim.clone().take(2 * MIB).await.unwrap_err();
        assert_eq!(begun.elapsed(), TIMEOUT, "clones share the waiting time");
        let another = budget.claim(TWO);
        for _ in 0..2 {
            assert!(tokio::time::timeout(TIMEOUT / 4, another.take(2 * MIB)).await.is_err());
        }
        another.take(2 * MIB).await.unwrap_err();
        assert_eq!(begun.elapsed(), 2 * TIMEOUT, "the waits add up");
        drop(others);
        claim.take(2 * MIB).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn claim_with_memory_does_not_wait() {
        let budget = budget();
        let claim = budget.claim(ONE);
        let mut some = claim.take(2 * MIB).await.unwrap();
        let others = budget.claim(TWO).take(13 * MIB).await.unwrap();
        let begun = Instant::now();
        claim.take(2 * MIB).await.unwrap_err();
        some.grow_to(3 * MIB).unwrap_err();
        some.try_grow(MIB).unwrap_err();
        let part = some.split(MIB);
        drop(some);
        claim.take(2 * MIB).await.unwrap_err();
        assert_eq!(begun.elapsed(), Duration::ZERO, "a part is still held");
        drop(part);
        let waiting = claim.take(3 * MIB);
        let (granted, ()) = tokio::join!(waiting, async {
            tokio::time::sleep(TIMEOUT / 2).await;
            claim.try_take(1).unwrap_err();
            drop(others);
        });
        assert_eq!(granted.unwrap().bytes(), 3 * MIB, "the claim has not waited before");
        assert_eq!(begun.elapsed(), TIMEOUT / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn claim_can_give_up_waiting() {
        let budget = budget();
        let others = budget.claim(ONE).take(15 * MIB).await.unwrap();
        let claim = budget.claim(TWO);
        assert!(claim.take(2 * MIB).now_or_never().is_none());
        assert_eq!(budget.usage().waiting, 0, "a cancelled request does not wait");
        let locked = claim.no_waiting();
        assert!(claim.take(2 * MIB).now_or_never().is_some_and(|refused| refused.is_err()));
        drop(locked);
        assert!(claim.take(2 * MIB).now_or_never().is_none());
        claim.never_wait();
        assert!(claim.take(2 * MIB).now_or_never().is_some_and(|refused| refused.is_err()));
        drop(others);
        assert_eq!(budget.usage(), Usage { total: 16 * MIB, taken: 0, waiting: 0 });
    }

    #[tokio::test(start_paused = true)]
    async fn impossible_request_fails_immediately() {
        let budget = budget();
        let claim = budget.claim(ONE);
        for bytes in [15 * MIB + 1, u64::MAX] {
            assert!(matches!(claim.take(bytes).await, Err(MemoryError::TooMuch { limit, .. }) if limit == 15 * MIB));
        }
        let _some = claim.take(14 * MIB).await.unwrap();
        let too_much = MemoryError::TooMuch { needed: 16 * MIB, limit: 15 * MIB };
        assert_eq!(claim.take(2 * MIB).await.unwrap_err(), too_much, "memory already held counts");
        assert!(matches!(budget.claim(ONE).try_take(2 * MIB), Err(MemoryError::TooManyRequests { .. })));
    }

    #[tokio::test(start_paused = true)]
    async fn reserved_share_serves_only_small_claims() {
        let budget = budget();
        let others = budget.claim(ONE).take(14 * MIB).await.unwrap();
        let large = budget.claim(TWO).take(MIB).await.unwrap();
        assert!(large.claim().try_take(1 << 10).is_err());
        let claim = budget.claim(TWO);
        let mut small = claim.try_take(MIB / 2).unwrap();
        small.try_grow(1 << 10).unwrap_err();
        small.grow_to(MIB).unwrap();
        drop(others);
        small.grow_to(4 * MIB).unwrap();
        assert_eq!(small.bytes(), 4 * MIB);
        small.shrink_to(3 * MIB + 1);
        assert_eq!(small.bytes(), 3 * MIB + UNIT);
        assert_eq!(small.split(5 * MIB / 2).bytes(), 5 * MIB / 2);
        drop((small, large));
        assert_eq!(budget.usage().taken, 0);
    }

    #[tokio::test]
    async fn attached_bytes_hold_their_reservation() {
        let budget = budget();
        let attached = budget.claim(ONE).take(2 * MIB).await.unwrap().attach_to(vec![1, 2]);
        let part = attached.slice(..1);
        drop(attached);
        assert_eq!((part.as_ref(), budget.usage().taken), (&[1][..], 2 * MIB));
        drop(part);
        assert_eq!(budget.usage().taken, 0);
    }
}
