//! What Linux says of the server's process.

use std::{
    fs, io,
    time::{Duration, Instant},
};

/// The processor time below which a process does nothing, in a [`PAUSE`].
const IDLE: Duration = Duration::from_millis(2);
/// How long it is watched at a time.
const PAUSE: Duration = Duration::from_millis(15);

/// A process that is watched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pid: u32,
}

/// What it had when measuring began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    ticks: Duration,
    threads: Duration,
    memory: u64,
}

impl Probe {
    /// That of a process.
    pub(super) fn of(pid: u32) -> Self {
        Self { pid }
    }

    /// Waits until the process does nothing, but not longer than that.
    pub(super) async fn settle(&self, most: Duration) -> io::Result<()> {
        let begun = Instant::now();
        let mut before = self.threads()?;
        while begun.elapsed() < most {
            tokio::time::sleep(PAUSE).await;
            let now = self.threads()?;
            if now.saturating_sub(before) < IDLE {
                break;
            }
            before = now;
        }
        Ok(())
    }

    /// Begins to measure: the peak begins anew.
    pub(super) fn begin(&self) -> io::Result<Begun> {
        fs::write(format!("/proc/{}/clear_refs", self.pid), "5")?;
        Ok(Begun { ticks: self.ticks()?, threads: self.threads()?, memory: self.status("VmRSS:")? })
    }

    /// The processor time since, and the growth of memory at the peak.
    ///
    /// Threads are counted by the nanosecond but only as long as they live; the process as a whole by ticks of 10 ms.
    pub(super) fn since(&self, begun: &Begun) -> io::Result<(Duration, u64)> {
        let peak = self.status("VmHWM:")?;
        let ticks = self.ticks()?.saturating_sub(begun.ticks).saturating_sub(Duration::from_millis(10));
        let threads = self.threads()?.saturating_sub(begun.threads);
        Ok((ticks.max(threads), peak.saturating_sub(begun.memory)))
    }

    fn ticks(&self) -> io::Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
        let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 10))
    }

    fn threads(&self) -> io::Result<Duration> {
        let mut sum = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.pid))? {
            // It may have ended since.
            let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
            sum += text.split_whitespace().next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(Duration::from_nanos(sum))
    }

    fn status(&self, name: &str) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kib.map(|kib| kib * 1024).ok_or_else(|| io::Error::other(format!("{name} is not said")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn probe_measures_cpu_time_and_memory() {
        let probe = Probe::of(std::process::id());
        let begun = probe.begin().unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        let mut bytes = Vec::new();
        while probe.since(&begun).unwrap().0 < Duration::from_millis(50) {
            assert!(Instant::now() < end, "no time is counted");
            bytes = vec![1_u8; 32 << 20];
        }
        drop(std::hint::black_box(bytes));
        let (_, memory) = probe.since(&begun).unwrap();
        assert!(memory >= 30 << 20, "{memory}");
        assert!(Probe::of(u32::MAX).begin().is_err());
    }
}
