//! What is allocated while something is done.

use std::{
    alloc::System,
    future::Future,
    sync::{
        Once,
        atomic::{AtomicI64, AtomicU64, Ordering::SeqCst},
    },
};

use tracking_allocator::{AllocationGroupId, AllocationRegistry, AllocationTracker, Allocator};

#[global_allocator]
static ALLOCATOR: Allocator<System> = Allocator::system();

static ALLOCATED: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);
static COUNT: AtomicU64 = AtomicU64::new(0);

/// What was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocated {
    /// The most bytes at a time.
    pub(crate) peak: u64,
    /// How many allocations there were.
    pub(crate) count: u64,
}

struct Counter;

/// Counts what is allocated by all threads. One at a time may ask.
pub(crate) async fn counted<T>(done: impl Future<Output = T>) -> (T, Allocated) {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| AllocationRegistry::set_global_tracker(Counter).unwrap());
    ALLOCATED.store(0, SeqCst);
    PEAK.store(0, SeqCst);
    COUNT.store(0, SeqCst);
    AllocationRegistry::enable_tracking();
    let done = done.await;
    AllocationRegistry::disable_tracking();
    let peak = u64::try_from(PEAK.load(SeqCst)).unwrap_or(0);
    (done, Allocated { peak, count: COUNT.load(SeqCst) })
}

impl AllocationTracker for Counter {
    fn allocated(&self, _: usize, size: usize, _: usize, _: AllocationGroupId) {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        let held = ALLOCATED.fetch_add(size, SeqCst).saturating_add(size);
        PEAK.fetch_max(held, SeqCst);
        COUNT.fetch_add(1, SeqCst);
    }

    fn deallocated(&self, _: usize, size: usize, _: usize, _: AllocationGroupId, _: AllocationGroupId) {
        ALLOCATED.fetch_sub(i64::try_from(size).unwrap_or(i64::MAX), SeqCst);
    }
}
