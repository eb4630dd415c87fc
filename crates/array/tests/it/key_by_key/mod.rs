//! Arrays and hierarchies in stores that are written key by key.

mod appends;
mod elements;
mod fake_store;
mod leftovers;
mod nodes;
mod pieces;
mod stale;
