//! Sums without rounding errors.

mod further;
pub(crate) mod ratio;
pub(crate) mod sums;
pub(crate) mod superaccumulator;
pub(crate) mod term;
pub(crate) mod total;
