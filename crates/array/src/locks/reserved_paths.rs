//! Paths reserved by operations that take several commits.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::timeout};
use zarrd_meta::NodePath;

/// Paths, each reserved by any number of operations.
#[derive(Debug, Default)]
pub(crate) struct ReservedPaths {
    paths: Mutex<Vec<NodePath>>,
    /// Notified whenever a reservation ends.
    ended: Notify,
}

/// A reserved path, until it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    reserved: Arc<ReservedPaths>,
    path: NodePath,
}

impl ReservedPaths {
    pub(crate) fn reserve(self: &Arc<Self>, path: &NodePath) -> Reservation {
        self.paths.lock().push(path.clone());
        Reservation { reserved: Arc::clone(self), path: path.clone() }
    }

    /// True if a reserved path is this one, above it or below it.
    pub(crate) fn overlaps(&self, path: &NodePath) -> bool {
        let overlaps =
            |reserved: &NodePath| reserved.relative_to(path).is_some() || path.relative_to(reserved).is_some();
        self.paths.lock().iter().any(overlaps)
    }

    /// Waits until this very path is not reserved; false if that takes longer than `patience`.
    pub(crate) async fn wait_until_free(&self, path: &NodePath, patience: Duration) -> bool {
        let free = async {
            loop {
                let ended = self.ended.notified();
                if !self.paths.lock().contains(path) {
                    return;
                }
                ended.await;
            }
        };
        timeout(patience, free).await.is_ok()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut paths = self.reserved.paths.lock();
        if let Some(at) = paths.iter().position(|path| *path == self.path) {
            paths.swap_remove(at);
        }
        drop(paths);
        self.reserved.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn path(text: &str) -> NodePath {
        NodePath::parse(text).unwrap()
    }

    #[tokio::test]
    async fn wait_ends_when_every_reservation_is_dropped() {
        let reserved = Arc::new(ReservedPaths::default());
        let [one, two] = [(); 2].map(|()| reserved.reserve(&path("/a/b")));
        let waiting = path("/a/b");
        let mut wait = Box::pin(reserved.wait_until_free(&waiting, Duration::from_secs(60)));
        assert!((&mut wait).now_or_never().is_none());
        drop(one);
        assert!((&mut wait).now_or_never().is_none());
        drop(two);
        assert_eq!((&mut wait).now_or_never(), Some(true));
    }

    #[tokio::test]
    async fn wait_times_out() {
        let reserved = Arc::new(ReservedPaths::default());
        let _held = reserved.reserve(&path("/a"));
        assert!(!reserved.wait_until_free(&path("/a"), Duration::from_millis(5)).await);
        assert!(reserved.wait_until_free(&path("/a/b"), Duration::from_millis(5)).await);
    }

    #[test]
    fn ancestors_and_descendants_overlap() {
        let reserved = Arc::new(ReservedPaths::default());
        let reservation = reserved.reserve(&path("/a/b"));
        for (other, expected) in [("/", true), ("/a", true), ("/a/b", true), ("/a/b/c", true), ("/a/bc", false)] {
            assert_eq!(reserved.overlaps(&path(other)), expected, "{other}");
        }
        drop(reservation);
        assert!(!reserved.overlaps(&path("/a")));
    }
}
