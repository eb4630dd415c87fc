//! Arrays and hierarchies in stores that are written key by key.

mod elements;
mod fake_store;
mod nodes;
mod stale;
