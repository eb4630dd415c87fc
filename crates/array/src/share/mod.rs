//! What there is only so much of, memory and threads, shared among callers.
//!
//! A [`Pool`] has an amount of something. Whoever wants some takes it if it is free, or waits in the queue of their caller; the queues take turns, and while others wait a
//! caller has at most half. [`Classes`] keeps a part of a pool for those who want little, so that they never wait for those who want much.
//!
//! Memory is reserved through an [`Account`], which is why no two requests can wait for each other: it waits only as long as it holds nothing.

mod account;
mod pool;

pub(crate) use account::Account;
pub(crate) use pool::{Class, Classes, Permit, Refused};

/// On whose behalf something is done: the same number is the same caller. What is behind it, an address or a name, is the business of those above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Caller(u128);

impl Caller {
    /// A caller by a number of their own.
    pub const fn new(number: u128) -> Self {
        Self(number)
    }
}
