//! Reading: from a plan to elements.
//!
//! The way of an element: [`feed`] finds what has to be fetched, in the order of the answer; each find is a [`job`] that fetches, decodes and [puts
//! into place](place), several at a time; the places are the [lanes](lanes) of a slab; [`assemble`] yields the lanes that are full.

pub(crate) mod array_read;
pub(crate) mod assemble;
pub(crate) mod buffer_pool;
pub(crate) mod context;
pub(crate) mod encoded_chunk;
pub(crate) mod job;
pub(crate) mod memory;
pub(crate) mod metrics;
pub(crate) mod needs;
pub(crate) mod plan;
pub(crate) mod scatter;
pub(crate) mod scheduler;
pub(crate) mod slab_buffer;
