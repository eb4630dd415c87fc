//! Rejected changes: each one is answered with the problem that locates the error, and nothing is written.

mod elements;
mod nodes;
mod rejection;
