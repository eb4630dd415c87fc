//! Resource usage of the server's process, as reported by Linux.

use std::{
    fs, io,
    time::{Duration, Instant},
};

/// The processor time within [`PAUSE`] below which a process is idle.
const IDLE: Duration = Duration::from_millis(2);
/// The duration of one observation.
const PAUSE: Duration = Duration::from_millis(15);

/// An observed process.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    pid: u32,
}

/// Resource usage at the start of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct ProbeStart {
    ticks: Duration,
    threads: Duration,
    memory: u64,
}

impl Probe {
    /// The probe of a process.
    pub fn of(pid: u32) -> Self {
        Self { pid }
    }

    /// Waits until the process is idle, at most for `most`.
    pub async fn settle(&self, most: Duration) -> io::Result<()> {
        let start = Instant::now();
        let mut before = self.threads()?;
        while start.elapsed() < most {
            tokio::time::sleep(PAUSE).await;
            let now = self.threads()?;
            if now.saturating_sub(before) < IDLE {
                break;
            }
            before = now;
        }
        Ok(())
    }

    /// Starts a measurement and resets the peak.
    pub fn begin(&self) -> io::Result<ProbeStart> {
        fs::write(format!("/proc/{}/clear_refs", self.pid), "5")?;
        Ok(ProbeStart { ticks: self.ticks()?, threads: self.threads()?, memory: self.status("VmRSS:")? })
    }

    /// The processor time since the start, and the growth of memory at the peak.
    ///
    /// Live threads are measured in nanoseconds; the process as a whole in ticks of 10 ms.
    pub fn since(&self, start: &ProbeStart) -> io::Result<(Duration, u64)> {
        let peak = self.status("VmHWM:")?;
        let ticks = self.ticks()?.saturating_sub(start.ticks).saturating_sub(Duration::from_millis(10));
        let threads = self.threads()?.saturating_sub(start.threads);
        Ok((ticks.max(threads), peak.saturating_sub(start.memory)))
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
            // The thread may have ended.
            let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
            sum += text.split_whitespace().next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(Duration::from_nanos(sum))
    }

    fn status(&self, name: &str) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kib.map(|kib| kib * 1024).ok_or_else(|| io::Error::other(format!("{name} is missing")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn probe_measures_cpu_time_and_memory() {
        let probe = Probe::of(std::process::id());
        let start = probe.begin().unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        let mut bytes = Vec::new();
        while probe.since(&start).unwrap().0 < Duration::from_millis(50) {
            assert!(Instant::now() < end, "no time is counted");
            bytes = vec![1_u8; 32 << 20];
        }
        drop(std::hint::black_box(bytes));
        let (_, memory) = probe.since(&start).unwrap();
        assert!(memory >= 30 << 20, "{memory}");
        assert!(Probe::of(u32::MAX).begin().is_err());
    }
}
