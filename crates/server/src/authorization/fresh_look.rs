//! Reading the access directory at once for a credential that is unknown.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::Mutex,
    task::spawn_blocking,
    time::{Instant, sleep_until, timeout},
};

/// The minimum time between the starts of two reads: 20 a second.
const INTERVAL: Duration = Duration::from_millis(50);

/// The time for which a request waits. A network file system may block for longer; then the credential stays unknown.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads a directory for those who wait, one read at a time and at most 20 a second.
#[derive(Default)]
pub(super) struct FreshLook {
    /// The start of the last read. Locked during a read.
    last: Arc<Mutex<Option<Instant>>>,
}

impl FreshLook {
    /// Returns after a read that began after the call, or after a second.
    pub(super) async fn read(&self, read: impl FnOnce() + Send + 'static) {
        // What is unknown without the read stays so.
        let _ = timeout(PATIENCE, self.read_in_turn(read)).await;
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
        let (look, reads) = (FreshLook::default(), Arc::new(AtomicUsize::new(0)));
        let began = Instant::now();
        for _ in 0..4 {
            let read = |_| {
                let reads = Arc::clone(&reads);
                look.read(move || {
                    reads.fetch_add(1, SeqCst);
                })
            };
            join_all((0..100).map(read)).await;
        }
        // Those who came during a read share the next one.
        assert!((4..=8).contains(&reads.load(SeqCst)), "{reads:?}");
        assert!(began.elapsed() >= 3 * INTERVAL);
    }

    #[tokio::test]
    async fn blocked_read_delays_requests_for_a_second_and_is_the_only_one() {
        let (look, reads) = (FreshLook::default(), Arc::new(AtomicUsize::new(0)));
        let began = Instant::now();
        let read = |_| {
            let reads = Arc::clone(&reads);
            look.read(move || {
                reads.fetch_add(1, SeqCst);
                std::thread::sleep(3 * PATIENCE / 2);
            })
        };
        join_all((0..10).map(read)).await;
        assert_eq!(reads.load(SeqCst), 1);
        assert!(began.elapsed() < 3 * PATIENCE / 2, "{:?}", began.elapsed());
    }
}
