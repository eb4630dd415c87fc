//! Reductions of what a read selects.
//!
//! A [`ReduceRequest`] is planned like a read, and consumes its elements: the jobs of the read pass the elements of each
//! chunk to a [sink](sink), which adds them to partial results. A result with many groups is made [slab by
//! slab](slabs).

pub(crate) mod request;
pub(crate) mod run;
mod sink;
mod slabs;
pub(crate) mod statistics;
