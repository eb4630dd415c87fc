//! What a request took, and how bad that is.

use std::time::Duration;

/// The processor time that a request may take, if it carries and yields little.
const CPU: Duration = Duration::from_secs(2);
/// The memory that it may take then, in bytes.
const MEMORY: u64 = 64 << 20;
/// The latency that counts as much as all of [`CPU`], so that waiting without working is noticed as well.
const LATENCY: Duration = Duration::from_secs(20);
/// The bytes below which a request does not get any denser.
const LEAST: u64 = 16 << 10;

/// What was seen of one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The status of its answer.
    pub status: u16,
    /// The bytes that it carries: the target, the headers and the body.
    pub carried: u64,
    /// The bytes of the answer's body.
    pub yielded: u64,
    /// The bytes of a chunk that has to be decoded or encoded for it; 0 where there is none.
    pub chunk: u64,
    /// The server's processor time.
    pub cpu: Duration,
    /// The growth of the server's memory at the peak, in bytes.
    pub memory: u64,
    /// The time until the end of the answer.
    pub latency: Duration,
}

impl Measured {
    /// What both have at the least, of the same request: what else went on in the server is in one of them only.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.min(other.cpu),
            memory: self.memory.min(other.memory),
            latency: self.latency.min(other.latency),
            ..self
        }
    }

    /// How much more than it may it takes: beyond 1 it is too much.
    ///
    /// A request that moves more than 64 MiB, or has a chunk that is larger, may take memory of that size, and processor time in proportion.
    pub fn excess(&self) -> f64 {
        let size = (self.carried + self.yielded).max(self.chunk).max(MEMORY) as f64;
        let times = size / MEMORY as f64;
        let cpu = self.cpu.as_secs_f64() / (CPU.as_secs_f64() * times);
        cpu.max(self.memory as f64 / size)
    }

    /// Whether it takes more than it may.
    pub fn is_too_much(&self) -> bool {
        self.excess() > 1.0
    }

    /// What it takes for each kilobyte that is moved.
    pub fn density(&self) -> f64 {
        let latency = self.latency.as_secs_f64() / LATENCY.as_secs_f64();
        let moved = (self.carried + self.yielded).max(LEAST) as f64 / 1024.0;
        let cpu = self.cpu.as_secs_f64() / CPU.as_secs_f64();
        cpu.max(self.memory as f64 / MEMORY as f64).max(latency) / moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn measured(cpu: u64, memory: u64) -> Measured {
        let [cpu, latency] = [Duration::from_millis(cpu), Duration::ZERO];
        Measured { status: 200, carried: 1000, yielded: 1000, chunk: 0, cpu, memory, latency }
    }

    #[test]
    fn request_exceeds_the_limit_at_two_seconds_or_64_mib() {
        for (cpu, memory, too_much) in
            [(2000, 0, false), (2001, 0, true), (0, 64 * MIB, false), (0, 64 * MIB + 1, true), (1999, 63 * MIB, false)]
        {
            assert_eq!(measured(cpu, memory).is_too_much(), too_much, "{cpu} ms, {memory} bytes");
        }
    }

    #[test]
    fn limits_grow_with_the_bytes_transferred_or_decoded() {
        let dear = measured(3000, 100 * MIB);
        assert!(dear.is_too_much());
        assert!(!Measured { carried: 60 * MIB, yielded: 40 * MIB, ..dear }.is_too_much());
        assert!(!Measured { chunk: 100 * MIB, ..dear }.is_too_much());
        assert!(Measured { chunk: 99 * MIB, ..dear }.is_too_much(), "memory beyond the chunk's");
        assert!(
            Measured { chunk: 128 * MIB, cpu: Duration::from_secs(5), ..dear }.is_too_much(),
            "time beyond the chunk's"
        );
        assert!(
            Measured { yielded: 60 * MIB, chunk: 60 * MIB, ..dear }.is_too_much(),
            "the larger counts, not the sum"
        );
    }

    #[test]
    fn density_is_per_kilobyte_with_a_minimum_size() {
        let (small, large) = (measured(100, MIB), Measured { carried: MIB, ..measured(200, 2 * MIB) });
        assert!(small.density() > large.density());
        assert!(large.excess() > small.excess());
        let tiny = Measured { carried: 1, yielded: 0, ..small };
        assert_eq!(tiny.density(), small.density());
        let slow = Measured { latency: Duration::from_secs(30), ..small };
        assert!(slow.density() > small.density() && slow.excess() == small.excess());
    }

    #[test]
    fn minimum_of_two_measurements_is_kept() {
        let [first, second] = [measured(5, 9), measured(6, 8)];
        assert_eq!(first.least(second), measured(5, 8));
    }
}
