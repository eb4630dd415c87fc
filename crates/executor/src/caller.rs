//! Callers, which share memory and threads, and the usage of these.

/// A caller, identified by a number. Higher layers assign one to each address or token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Caller(u128);

impl Caller {
    /// An unknown caller.
    pub const UNKNOWN: Self = Self(0);

    /// The caller with a number.
    pub const fn new(number: u128) -> Self {
        Self(number)
    }
}

/// The usage of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The total amount.
    pub total: u64,
    /// The amount that is taken.
    pub taken: u64,
    /// The number of requests that wait.
    pub waiting: u64,
}
