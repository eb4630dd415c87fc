//! Changing values: the files and directories of a store that writes.
//!
//! ```text
//!   set ── receive ──► a temporary file in the directory of the key, which is made if it is missing
//!                        │  owner, mode, a new time of modification, fsync
//!                        ▼
//!                      lock of the key: what has the name now ── precondition ──► rename ──► version
//!                        │
//!                        ▼
//!                      fsync of the directory, and of those above directories that were made
//! ```

mod directories;
mod entry;
mod erase;
mod erase_prefix;
mod open;
mod parent;
mod receive;
mod received;
mod set;
mod spelling;
mod spool;
mod sweep;
mod tree;

pub(crate) use self::{
    erase::erase,
    erase_prefix::erase_prefix,
    open::{check_writable, start},
    received::receive,
    set::set,
};
