//! What there is only so much of, memory and threads, shared among callers.
//!
//! A [`Pool`](pool::Pool) has an amount of something. Whoever wants some takes it if it is free, or waits in the queue of their caller; the queues take turns, and while others
//! wait a caller has at most half. [`Classes`] keeps a part of a pool for those who want little, so that they never wait for those who want much.
//!
//! **Who holds never waits.** All memory that requests hold, for bodies, documents, plans, chunks, listings and answers, is of one [`MemoryBudget`], and each request takes it
//! through one [`Claim`], which counts what the request has. A claim waits only while it has nothing, and all its waits together are no longer than the budget's patience; in all
//! other cases it takes what is free, or is refused. So whoever waits for memory holds none, no two requests wait for each other, and none waits for long. What it cannot do without it gets
//! before those who wait, as far as it is free: only so is it done with what it has. There is no other way to memory: a
//! [`Permit`] comes from a claim, more of it is taken through the same claim, and what is dropped is given back to both. Those who hold a lock that others wait for with memory in
//! their hands give up the right to wait as well, for as long or altogether ([`Claim::no_waiting`], [`Claim::never_wait`]).

pub(crate) mod account;
pub(crate) mod caller;
pub(crate) mod claim;
pub(crate) mod error;
pub(crate) mod pool;
