//! Reading and changing hierarchies of all dialects in an in-memory store.

mod concurrency;
mod consolidated_metadata;
mod convert;
mod crash_recovery;
mod create;
mod describe;
mod erase;
mod isolation;
mod masks;
mod pagination;
mod patch;
mod replaced;
mod round_trip;
mod store_requests;
mod test_store;
