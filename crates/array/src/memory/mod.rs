//! Memory, shared fairly among callers.
//!
//! It is in a [`PartitionedPool`](zarrd_executor::pool::PartitionedPool), as threads are.
//!
//! **A request that holds memory never waits for more.** All memory that requests hold, for bodies, documents, plans,
//! chunks, listings and answers, is from one [`MemoryBudget`](claim::MemoryBudget), and each request takes it through
//! one [`Claim`](claim::Claim), which counts what the request holds. A claim waits only while it holds nothing, and all
//! its waits together take no longer than the budget's patience; in all other cases it takes what is free, or fails. So
//! a request that waits for memory holds none, no two requests wait for each other, and none waits for long. Memory
//! that a request cannot do without is granted before others that wait, as far as it is free, since only then does the
//! request end and release it.
//!
//! There is no other way to memory: a [`Permit`](claim::Permit) comes from a claim, more is taken through the same
//! claim, and dropping it releases it to both. A request that holds a lock for which others wait, who may hold memory,
//! also gives up its right to wait, for as long ([`Claim::no_waiting`](claim::Claim::no_waiting)) or altogether
//! ([`Claim::never_wait`](claim::Claim::never_wait)).

pub(crate) mod account;
pub(crate) mod claim;
pub(crate) mod error;
