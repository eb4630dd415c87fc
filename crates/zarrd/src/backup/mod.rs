//! Backups: everything that a store has as of one commit, in a directory that several backups share.
//!
//! ```text
//! zarrd-backup.json           the format, and the store whose backups these are
//! lock                        held by the process that writes or restores
//! backups/20261128T074512Z.json       a backup: written last, so that it exists only if it is complete
//! backups/20261128T074512Z.records    its keys with versions and checksums, and small values
//! backups/20261128T074512Z.access/    the tokens, if they are part of it
//! values/ab/ab12…             a larger value, by its version
//! ```
//!
//! A version stands for one value of one key, so a value that the backup before has is not copied again. Files of values
//! are never changed. The names are of lower-case letters and digits, so any file system can have them.

mod contents;
mod directory;
mod error;
mod manifest;
mod pool;
mod records;
mod restore;
mod take;

pub(crate) use self::{
    directory::BackupDirectory,
    error::BackupError,
    manifest::{Manifest, Tokens},
    restore::{Damaged, restore},
    take::{Verify, take},
};
