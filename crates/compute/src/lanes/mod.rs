//! Loops over blocks of floats in lanes, which the compiler turns into vector instructions.

pub(crate) mod extremes;
mod magnitudes;
pub(crate) mod sums;
pub(crate) mod widest;
