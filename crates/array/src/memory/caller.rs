//! The caller on whose behalf memory and threads are used, and their usage.

/// On whose behalf something is done: the same number is the same caller. What is behind it, an address or a name, is the business of those above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Caller(u128);

impl Caller {
    /// The one who nothing is known of.
    pub const UNKNOWN: Self = Self(0);

    /// A caller by a number of their own.
    pub const fn new(number: u128) -> Self {
        Self(number)
    }
}

/// How much there is of something, and who wants it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How much there is.
    pub total: u64,
    /// How much of it is taken.
    pub taken: u64,
    /// How many wait for some.
    pub waiting: u64,
}
