//! Why there is no memory for a request.

/// There is no memory for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// There is never as much, whoever waits how long.
    #[error(
        "the request needs {needed} bytes of memory, and one request can have {limit} (fifteen sixteenths of `--max-memory`)"
    )]
    TooMuch {
        /// How many bytes are needed, with those that the request has.
        needed: u64,
        /// How many there are for one request.
        limit: u64,
    },
    /// Others have it.
    #[error("the request needs {needed} bytes of memory more, and {free} of {total} are free (`--max-memory`)")]
    Busy {
        /// How many bytes are needed.
        needed: u64,
        /// How many are free, some of them for those who need little or wait already.
        free: u64,
        /// How many there are.
        total: u64,
    },
    /// The caller has as much as one may have while others wait.
    #[error(
        "the request needs {needed} bytes of memory more, and its caller has {held} of {total} (`--max-memory`), of which one has at most half while others wait"
    )]
    TooManyRequests {
        /// How many bytes are needed.
        needed: u64,
        /// How many the caller has.
        held: u64,
        /// How many there are.
        total: u64,
    },
}
