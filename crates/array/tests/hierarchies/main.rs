//! Hierarchies over a store in memory, in all dialects: what there is, and changing that.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "what a test prepares has to be there")]

mod changing;
mod consolidated;
mod converting;
mod costs;
mod declaring;
mod erasing;
mod interrupted;
mod isolation;
mod lab;
mod paging;
mod racing;
mod telling;
mod trees;
