//! One codec each.

pub(crate) mod sharding;
mod tiles;
