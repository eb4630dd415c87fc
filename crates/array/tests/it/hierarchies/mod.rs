//! Reading and changing hierarchies of all dialects in an in-memory store.

mod absence;
mod cached_documents;
mod concurrency;
mod consolidated_metadata;
mod convert;
mod copies;
mod crash_recovery;
mod create;
mod describe;
mod erase;
mod isolation;
mod masks;
mod overwriting_conversion;
mod pagination;
mod patch;
mod replaced;
mod rewritten_copies;
mod round_trip;
mod shared_commits;
mod store_requests;
mod test_store;
mod two_dialects;
mod two_dialects_model;
mod two_engines;
