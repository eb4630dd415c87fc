//! The `zarrs` crate over stores of ours: in memory, and over HTTP.

// What is marked so may panic like the tests that it helps.
#[cfg(test)]
mod arrays;
#[cfg(test)]
mod recorded;
#[cfg(test)]
#[path = "../served/mod.rs"]
mod served;
#[cfg(test)]
mod storage;
