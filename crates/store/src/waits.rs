//! The times that requests waited in a queue.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// The upper bounds of the classes of waits, in microseconds; the last class has none.
const BOUNDS: [u64; 10] = [100, 400, 1_600, 6_400, 25_600, 102_400, 409_600, 1_638_400, 6_553_600, 26_214_400];

/// The times that requests waited in a queue, whether in vain or not. Requests that did not wait are not counted.
#[derive(Debug, Default)]
pub struct WaitTimes {
    classes: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

/// The times recorded so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitTotals {
    /// The number of waits.
    pub count: u64,
    /// The sum of their times.
    pub sum: Duration,
    /// The number of waits that took up to so long and longer than the class before; `None` for those beyond all bounds.
    pub classes: Vec<(Option<Duration>, u64)>,
}

/// A wait, which is recorded when this is dropped.
#[derive(Debug)]
pub struct Wait {
    times: Arc<WaitTimes>,
    begun: Instant,
}

impl WaitTimes {
    /// Starts a wait.
    pub fn start(self: &Arc<Self>) -> Wait {
        Wait { times: Arc::clone(self), begun: Instant::now() }
    }

    /// Records a wait.
    pub fn record(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let class = BOUNDS.iter().position(|bound| micros <= *bound).unwrap_or(BOUNDS.len());
        if let Some(class) = self.classes.get(class) {
            class.fetch_add(1, Relaxed);
        }
        self.micros.fetch_add(micros, Relaxed);
    }

    /// The times recorded so far.
    pub fn totals(&self) -> WaitTotals {
        let bounds = BOUNDS.iter().map(|bound| Some(Duration::from_micros(*bound))).chain([None]);
        let classes: Vec<_> = bounds.zip(self.classes.iter().map(|class| class.load(Relaxed))).collect();
        let count = classes.iter().map(|(_, count)| *count).fold(0, u64::saturating_add);
        WaitTotals { count, sum: Duration::from_micros(self.micros.load(Relaxed)), classes }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.times.record(self.begun.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_classified_and_summed() {
        let times = Arc::new(WaitTimes::default());
        for micros in [0, 100, 101, 26_214_401] {
            times.record(Duration::from_micros(micros));
        }
        let WaitTotals { count, sum, classes } = times.totals();
        assert_eq!((count, sum), (4, Duration::from_micros(26_214_602)));
        let counts: Vec<u64> = classes.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!((classes[0].0, classes[10].0), (Some(Duration::from_micros(100)), None));
        drop(times.start());
        assert_eq!(times.totals().count, 5);
    }
}
