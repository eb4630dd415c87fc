//! Appends to datasets: the arrays of a group over one dimension, which grow together in one commit.
//!
//! The arrays are [planned](append::DatasetAppend) before the body arrives, and their elements are buffered one array
//! after the other. The [labels](continuity) of the coordinate have to continue. Then all arrays are planned anew, and
//! written, as often as other writers were faster.

pub(crate) mod append;
mod continuity;
mod coordinate;
pub(crate) mod error;
