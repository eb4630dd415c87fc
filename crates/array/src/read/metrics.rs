//! Metrics of a read.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// The metrics of a read, which are updated while it runs. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct ReadMetrics(Arc<Counts>);

/// The metrics of a read so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadStats {
    /// The time to resolve the array and plan the read.
    pub plan: Duration,
    /// The time spent fetching values, summed over concurrent fetches.
    pub fetch: Duration,
    /// The time spent decoding, summed in the same way.
    pub decode: Duration,
    /// The number of chunks, inner chunks and parts of uncompressed chunks that were decoded.
    pub decoded: u64,
    /// The number that were cached.
    pub cached: u64,
    /// The number that another read was decoding.
    pub shared: u64,
}

#[derive(Debug, Default)]
struct Counts {
    plan: AtomicU64,
    fetch: AtomicU64,
    decode: AtomicU64,
    decoded: AtomicU64,
    cached: AtomicU64,
    shared: AtomicU64,
}

impl ReadMetrics {
    /// The metrics so far.
    pub fn stats(&self) -> ReadStats {
        let Counts { plan, fetch, decode, decoded, cached, shared } = &*self.0;
        ReadStats {
            plan: Duration::from_nanos(plan.load(Relaxed)),
            fetch: Duration::from_nanos(fetch.load(Relaxed)),
            decode: Duration::from_nanos(decode.load(Relaxed)),
            decoded: decoded.load(Relaxed),
            cached: cached.load(Relaxed),
            shared: shared.load(Relaxed),
        }
    }

    pub(crate) fn planned(&self, took: Duration) {
        self.0.plan.fetch_add(nanos(took), Relaxed);
    }

    pub(crate) fn fetched(&self, took: Duration) {
        self.0.fetch.fetch_add(nanos(took), Relaxed);
    }

    pub(crate) fn decoded(&self, took: Duration) {
        self.0.decode.fetch_add(nanos(took), Relaxed);
        self.0.decoded.fetch_add(1, Relaxed);
    }

    pub(crate) fn cached(&self) {
        self.0.cached.fetch_add(1, Relaxed);
    }

    pub(crate) fn shared(&self) {
        self.0.shared.fetch_add(1, Relaxed);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
