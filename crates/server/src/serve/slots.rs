//! Who is connected, and who has to go for others.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The places for connections. Where all are taken, a new connection gets that of the one that has been idle for longest.
pub(super) struct Places {
    most: usize,
    begun: Instant,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    next: u64,
    connections: HashMap<u64, Arc<Activity>>,
}

/// A place for one connection; dropping it gives it back.
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
    activity: Arc<Activity>,
}

/// True if a connection is idle, and since when.
///
/// Idle is whoever has no request running and no answer that is still to be written: a connection that is new, or between two requests, or in the
/// middle of a head, or closing.
pub(super) struct Activity {
    begun: Instant,
    /// The microsecond since which it is idle, or one of the two below.
    since: AtomicU64,
    /// A request is being answered. This and the next are of the connection's own task.
    answering: AtomicBool,
    /// Something was written that may not have been flushed yet.
    unsent: AtomicBool,
    /// Cancelled where it lost its place.
    gone: CancellationToken,
}

/// A request is being answered; dropping it ends it.
pub(super) struct Answering(Arc<Activity>);

const BUSY: u64 = u64::MAX;
const GONE: u64 = u64::MAX - 1;

impl Places {
    /// So many places.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, begun: Instant::now(), taken: Mutex::default() })
    }

    /// A place, and whether somebody else lost it; `None` where none is free and nobody is idle.
    pub(super) fn take(self: &Arc<Self>) -> Option<(Place, Origin)> {
        let mut taken = self.taken.lock();
        let mut origin = Origin::Free;
        if taken.connections.len() >= self.most {
            taken.dismiss_idlest()?;
            origin = Origin::Idle;
        }
        let activity = Arc::new(Activity::new(self.begun));
        let number = taken.next;
        taken.next = number.wrapping_add(1);
        taken.connections.insert(number, activity.clone());
        Some((Place { places: self.clone(), number, activity }, origin))
    }
}

/// Where a place comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It was free.
    Free,
    /// It was that of an idle connection, which is closed.
    Idle,
}

impl Taken {
    /// Takes the place of the connection that has been idle for longest; `None` where none is.
    fn dismiss_idlest(&mut self) -> Option<()> {
        loop {
            let idle = self.connections.iter().filter_map(|(number, activity)| Some((activity.idle()?, *number)));
            let (since, number) = idle.min()?;
            // A request that came just now counts more.
            if self.connections.get(&number)?.dismiss(since) {
                self.connections.remove(&number);
                return Some(());
            }
        }
    }
}

impl Place {
    /// What the connection that has this place does.
    pub(super) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken.lock().connections.remove(&self.number);
    }
}

impl Activity {
    fn new(begun: Instant) -> Self {
        let activity = Self {
            begun,
            since: AtomicU64::new(0),
            answering: AtomicBool::new(false),
            unsent: AtomicBool::new(false),
            gone: CancellationToken::new(),
        };
        activity.since.store(activity.now(), Ordering::Relaxed);
        activity
    }

    /// Done where the connection lost its place and has to go.
    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// A request came; `None` where the connection has lost its place just before, so that it must not be answered.
    pub(super) fn answer(self: &Arc<Self>) -> Option<Answering> {
        let since = self.since.load(Ordering::Relaxed);
        let begun = match since {
            GONE => false,
            BUSY => true,
            _ => self.since.compare_exchange(since, BUSY, Ordering::AcqRel, Ordering::Acquire).is_ok(),
        };
        begun.then(|| {
            self.answering.store(true, Ordering::Relaxed);
            Answering(self.clone())
        })
    }

    /// Something is being written.
    pub(super) fn writes(&self) {
        self.unsent.store(true, Ordering::Relaxed);
    }

    /// All that was written is on its way.
    pub(super) fn flushed(&self) {
        self.unsent.store(false, Ordering::Relaxed);
        self.rest();
    }

    /// The connection does nothing any more but wait for the other side to close it.
    pub(super) fn closes(&self) {
        self.answering.store(false, Ordering::Relaxed);
        self.flushed();
    }

    /// Begins to be idle where nothing is left to do.
    fn rest(&self) {
        let busy = self.answering.load(Ordering::Relaxed) || self.unsent.load(Ordering::Relaxed);
        if !busy && self.since.load(Ordering::Relaxed) == BUSY {
            // Only the connection's own task changes it while it is busy.
            self.since.store(self.now(), Ordering::Release);
        }
    }

    fn idle(&self) -> Option<u64> {
        Some(self.since.load(Ordering::Acquire)).filter(|since| !matches!(*since, BUSY | GONE))
    }

    /// Takes the connection's place, if it is still idle since then.
    fn dismiss(&self, since: u64) -> bool {
        let dismissed = self.since.compare_exchange(since, GONE, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if dismissed {
            self.gone.cancel();
        }
        dismissed
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX).min(GONE - 1)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answering.store(false, Ordering::Relaxed);
        self.0.rest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    async fn later() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }

    #[tokio::test]
    async fn the_longest_idle_goes_first_and_the_busy_stay() {
        let places = Places::new(3);
        let (first, origin) = places.take().unwrap();
        assert_eq!(origin, Origin::Free);
        later().await;
        let (second, _) = places.take().unwrap();
        later().await;
        let (third, _) = places.take().unwrap();
        let answering = first.activity().answer().unwrap();
        later().await;
        let (fourth, origin) = places.take().unwrap();
        assert_eq!(origin, Origin::Idle);
        second.activity().gone().await;
        assert!(second.activity().answer().is_none(), "its request comes too late");
        drop(second);
        assert!(!third.activity().gone.is_cancelled());
        drop(answering);
        later().await;
        let (_fifth, _) = places.take().unwrap();
        third.activity().gone().await;
        let busy = [first.activity().answer().unwrap(), fourth.activity().answer().unwrap()];
        let (sixth, _) = places.take().unwrap();
        let _busy = sixth.activity().answer().unwrap();
        assert!(places.take().is_none(), "nobody is idle");
        drop(busy);
        drop(sixth);
        assert_eq!(places.take().unwrap().1, Origin::Free);
    }

    #[tokio::test]
    async fn an_answer_that_is_not_written_yet_is_no_idleness() {
        let places = Places::new(1);
        let (place, _) = places.take().unwrap();
        let activity = place.activity();
        let answering = activity.answer().unwrap();
        activity.writes();
        drop(answering);
        assert!(places.take().is_none());
        activity.flushed();
        let next = activity.answer().unwrap();
        activity.flushed();
        assert!(places.take().is_none(), "a piece of the answer was flushed, and more is to come");
        activity.closes();
        drop(next);
        assert!(places.take().is_some());
    }
}
