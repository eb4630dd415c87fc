//! The access directory.

mod changes;
mod disk;
mod handle;
mod listing;
mod reload;
mod state;

pub use handle::{AccessDirectory, MAX_CREDENTIALS};

#[cfg(test)]
mod tests;
