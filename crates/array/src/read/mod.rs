//! Reading: from a plan to elements.
//!
//! A [`ReadPlan`](plan::ReadPlan) lists the chunks that a selection touches. The [`scheduler`] finds the ranges to
//! fetch, in the order of the output; each is a [job] that fetches, decodes and [scatters](mod@scatter) elements into a
//! slab, several at a time. The [`slab_buffer`] consists of segments, and [`assemble`] returns each as soon as it is
//! full.
//!
//! A [distant](crate::context::Context::is_distant_at) store takes a round trip for each answer, so as much as memory
//! allows is asked for at a time: chunks of unknown version are read without being looked up, the indexes of shards are
//! read ahead ([`lookahead`]), and neighbouring parts are [fetched together](coalesce) over larger gaps.

pub(crate) mod array_read;
pub(crate) mod assemble;
mod cached_units;
mod chunk_keys;
mod chunk_versions;
pub(crate) mod coalesce;
pub(crate) mod consumer;
pub(crate) mod context;
pub(crate) mod cost;
pub(crate) mod current;
mod decode;
pub(crate) mod encoded_chunk;
pub(crate) mod job;
pub(crate) mod limits;
pub(crate) mod lookahead;
pub(crate) mod memory;
pub(crate) mod metrics;
pub(crate) mod needs;
pub(crate) mod plan;
mod runs;
pub(crate) mod scatter;
pub(crate) mod scheduler;
pub(crate) mod shard_index;
pub(crate) mod sink;
mod slab_buffer;
mod unit;
