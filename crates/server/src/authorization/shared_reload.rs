//! Reloading the access directory for an unknown credential, once for all concurrent requests.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::Mutex,
    time::{Instant, sleep_until, timeout},
};
use zarrd_executor::spawn_blocking;

/// The minimum time between the starts of two reads: 20 a second.
const INTERVAL: Duration = Duration::from_millis(50);

/// The time for which a request waits. A network file system may block for longer; then the credential stays unknown.
const PATIENCE: Duration = Duration::from_secs(1);

/// The time for which nothing is read again for the same credential: changes are noticed without it as soon.
const UNKNOWN_TIME: Duration = Duration::from_millis(250);

/// The maximum number of credentials for which nothing is read again.
const MAX_UNKNOWN: usize = 1024;

/// Reloads a directory for all requests that wait for it, one reload at a time and at most 20 a second.
#[derive(Default)]
pub(super) struct SharedReload {
    /// The start of the last read. Locked during a read.
    last: Arc<Mutex<Option<Instant>>>,
    /// The times of the last reads for credentials, by their hashes: a client that repeats a credential which was revoked
    /// does not wait for each request.
    unknown: parking_lot::Mutex<HashMap<u64, Instant>>,
    hasher: RandomState,
}

impl SharedReload {
    /// Returns true after a read that began after the call, or after a second; false at once if the directory was read
    /// for the same credential a moment ago.
    pub(super) async fn read(&self, credential: &[u8], read: impl FnOnce() + Send + 'static) -> bool {
        let (credential, called) = (self.hasher.hash_one(credential), Instant::now());
        let last = self.unknown.lock().get(&credential).copied();
        if last.is_some_and(|last| called.saturating_duration_since(last) < UNKNOWN_TIME) {
            return false;
        }
        // What is unknown without the read stays so.
        let _ = timeout(PATIENCE, self.read_in_turn(read)).await;
        // Others with the same credential wait for the read until it ends.
        let mut unknown = self.unknown.lock();
        if unknown.len() >= MAX_UNKNOWN {
            unknown.clear();
        }
        unknown.insert(credential, called);
        true
    }

    async fn read_in_turn(&self, read: impl FnOnce() + Send + 'static) {
        let called = Instant::now();
        let mut last = Arc::clone(&self.last).lock_owned().await;
        if last.is_some_and(|last| last >= called) {
            return;
        }
        if let Some(last) = *last {
            sleep_until(last + INTERVAL).await;
        }
        *last = Some(Instant::now());
        // The lock is held until the read ends, even if nobody waits for it any more.
        let reading = spawn_blocking(move || {
            read();
            drop(last);
        });
        // An error means that the read panicked, and is logged as such.
        let _ = reading.await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use futures::future::join_all;

    use super::*;

    #[tokio::test]
    async fn reads_are_shared_and_bounded() {
        let (reload, reads) = (SharedReload::default(), Arc::new(AtomicUsize::new(0)));
        let began = Instant::now();
        for round in 0..4 {
            let credentials: Vec<[u8; 2]> = (0..100).map(|number| [round, number]).collect();
            let read = |credential: &[u8; 2]| {
                let (reload, reads, credential) = (&reload, Arc::clone(&reads), *credential);
                async move {
                    let read = move || {
                        reads.fetch_add(1, SeqCst);
                    };
                    assert!(reload.read(&credential, read).await);
                }
            };
            join_all(credentials.iter().map(read)).await;
        }
        // Those who came during a read share the next one.
        assert!((4..=8).contains(&reads.load(SeqCst)), "{reads:?}");
        assert!(began.elapsed() >= 3 * INTERVAL);
    }

    #[tokio::test]
    async fn blocked_read_delays_requests_for_a_second_and_is_the_only_one() {
        let (reload, reads) = (SharedReload::default(), Arc::new(AtomicUsize::new(0)));
        let began = Instant::now();
        let read = |number: u8| {
            let (reload, reads) = (&reload, Arc::clone(&reads));
            async move {
                let blocked = move || {
                    reads.fetch_add(1, SeqCst);
                    std::thread::sleep(3 * PATIENCE / 2);
                };
                reload.read(&[number], blocked).await
            }
        };
        join_all((0..10).map(read)).await;
        assert_eq!(reads.load(SeqCst), 1);
        assert!(began.elapsed() < 3 * PATIENCE / 2, "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn credential_that_stays_unknown_waits_once() {
        let reload = SharedReload::default();
        assert!(reload.read(b"one", || ()).await);
        let began = Instant::now();
        for _ in 0..1000 {
            assert!(!reload.read(b"one", || ()).await);
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert!(reload.read(b"other", || ()).await);
        tokio::time::advance(UNKNOWN_TIME).await;
        assert!(reload.read(b"one", || ()).await, "it may have become known");
    }
}
