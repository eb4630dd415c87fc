//! Errors of taking memory.

/// The memory that a request needs is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The request needs more than one request can ever have.
    #[error(
        "the request needs {needed} bytes of memory; the limit for one request is {limit} (fifteen sixteenths of `--max-memory`)"
    )]
    TooMuch {
        /// The bytes needed, including those that the request holds.
        needed: u64,
        /// The bytes that one request can have.
        limit: u64,
    },
    /// Other requests hold it.
    #[error("the request needs {needed} more bytes of memory, but only {free} of {total} are free (`--max-memory`)")]
    Busy {
        /// The bytes needed.
        needed: u64,
        /// The bytes that are free, some of them reserved for small requests or for those that wait already.
        free: u64,
        /// The bytes in all.
        total: u64,
    },
    /// The caller holds as much as one caller may while others wait.
    #[error(
        "the request needs {needed} more bytes of memory, but its caller uses {used} of {total} (`--max-memory`), of which one caller has at most half while others wait"
    )]
    TooManyRequests {
        /// The bytes needed.
        needed: u64,
        /// The bytes that the caller holds.
        used: u64,
        /// The bytes in all.
        total: u64,
    },
}
