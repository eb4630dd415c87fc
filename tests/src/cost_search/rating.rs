//! The cost of a request, and its rating.

use std::time::Duration;

/// The processor time limit of a request with a small body and response.
const CPU_LIMIT: Duration = Duration::from_secs(2);
/// The memory limit of such a request, in bytes.
const MEMORY_LIMIT: u64 = 64 << 20;
/// The latency that counts as much as all of [`CPU_LIMIT`], so that idle waiting is detected too.
const LATENCY_LIMIT: Duration = Duration::from_secs(20);
/// The size in bytes below which a request is not considered any denser.
const MIN_SIZE: u64 = 16 << 10;

/// The measurements of one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// The status of the response.
    pub status: u16,
    /// The bytes sent: target, headers and body.
    pub sent: u64,
    /// The bytes of the response body, without its content coding.
    pub received: u64,
    /// The size of a chunk that must be decoded or encoded; 0 if there is none.
    pub chunk: u64,
    /// The memory that it takes in addition, by a known rule: for encoding such a chunk, that of its codec; for the labels
    /// of a coordinate, that of coordinates. 0 if there is none.
    pub extra: u64,
    /// The server's processor time.
    pub cpu: Duration,
    /// The growth of the server's memory at the peak, in bytes.
    pub memory: u64,
    /// The time until the end of the response.
    pub latency: Duration,
}

impl Measurement {
    /// The minimum of two measurements of the same request, since unrelated work in the server affects only one of
    /// them.
    #[must_use]
    pub fn minimum(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.min(other.cpu),
            memory: self.memory.min(other.memory),
            latency: self.latency.min(other.latency),
            ..self
        }
    }

    /// The cost relative to the limit; above 1 is too much.
    ///
    /// A request that transfers more than 64 MiB, or has a larger chunk, may use memory of that size, and processor
    /// time in proportion. One that encodes chunks, or searches labels, may use the memory of a chunk and that of the
    /// rule for these.
    pub fn excess(&self) -> f64 {
        let size = (self.sent + self.received).max(self.chunk).max(MEMORY_LIMIT) as f64;
        let times = size / MEMORY_LIMIT as f64;
        let cpu = self.cpu.as_secs_f64() / (CPU_LIMIT.as_secs_f64() * times);
        cpu.max(self.memory as f64 / size.max(self.chunk.saturating_add(self.extra) as f64))
    }

    /// True if the cost exceeds the limit.
    pub fn exceeds_limit(&self) -> bool {
        self.excess() > 1.0
    }

    /// The cost per kilobyte transferred.
    pub fn density(&self) -> f64 {
        let latency = self.latency.as_secs_f64() / LATENCY_LIMIT.as_secs_f64();
        let moved = (self.sent + self.received).max(MIN_SIZE) as f64 / 1024.0;
        let cpu = self.cpu.as_secs_f64() / CPU_LIMIT.as_secs_f64();
        cpu.max(self.memory as f64 / MEMORY_LIMIT as f64).max(latency) / moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn measured(cpu: u64, memory: u64) -> Measurement {
        let [cpu, latency] = [Duration::from_millis(cpu), Duration::ZERO];
        Measurement { status: 200, sent: 1000, received: 1000, chunk: 0, extra: 0, cpu, memory, latency }
    }

    #[test]
    fn request_exceeds_the_limit_at_two_seconds_or_64_mib() {
        for (cpu, memory, too_much) in
            [(2000, 0, false), (2001, 0, true), (0, 64 * MIB, false), (0, 64 * MIB + 1, true), (1999, 63 * MIB, false)]
        {
            assert_eq!(measured(cpu, memory).exceeds_limit(), too_much, "{cpu} ms, {memory} bytes");
        }
    }

    #[test]
    fn limits_grow_with_the_bytes_transferred_or_decoded() {
        let dear = measured(3000, 100 * MIB);
        assert!(dear.exceeds_limit());
        assert!(!Measurement { sent: 60 * MIB, received: 40 * MIB, ..dear }.exceeds_limit());
        assert!(!Measurement { chunk: 100 * MIB, ..dear }.exceeds_limit());
        assert!(Measurement { chunk: 99 * MIB, ..dear }.exceeds_limit(), "memory beyond the chunk's");
        assert!(
            Measurement { chunk: 128 * MIB, cpu: Duration::from_secs(5), ..dear }.exceeds_limit(),
            "time beyond the chunk's"
        );
        assert!(
            !Measurement { chunk: 60 * MIB, extra: 40 * MIB, cpu: Duration::ZERO, ..dear }.exceeds_limit(),
            "memory of an encoder"
        );
        assert!(
            Measurement { chunk: 60 * MIB, extra: 39 * MIB, cpu: Duration::ZERO, ..dear }.exceeds_limit(),
            "memory beyond the encoder's"
        );
        assert!(Measurement { extra: 100 * MIB, ..dear }.exceeds_limit(), "an encoder gets no time");
        assert!(
            Measurement { received: 60 * MIB, chunk: 60 * MIB, ..dear }.exceeds_limit(),
            "the larger counts, not the sum"
        );
    }

    #[test]
    fn density_is_per_kilobyte_with_a_minimum_size() {
        let (small, large) = (measured(100, MIB), Measurement { sent: MIB, ..measured(200, 2 * MIB) });
        assert!(small.density() > large.density());
        assert!(large.excess() > small.excess());
        let tiny = Measurement { sent: 1, received: 0, ..small };
        assert_eq!(tiny.density(), small.density());
        let slow = Measurement { latency: Duration::from_secs(30), ..small };
        assert!(slow.density() > small.density() && slow.excess() == small.excess());
    }

    #[test]
    fn minimum_of_two_measurements_is_kept() {
        let [first, second] = [measured(5, 9), measured(6, 8)];
        assert_eq!(first.minimum(second), measured(5, 8));
    }
}
