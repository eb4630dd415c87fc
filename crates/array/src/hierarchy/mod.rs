//! Hierarchies: describing and changing nodes.
//!
//! A [`walk`] reads the documents of a subtree as of one commit. [`describe`] turns them into the Zarr Object
//! Model. Changes ([`create`], [`patch`], [`convert`], [`copy`], [`erase`]) are attempts: each plans a
//! [`ChangeSet`](crate::metadata::change_set::ChangeSet) on the versions it has read, and commits it on condition that
//! these are current. Changes that take several commits ([`copy`], [`shrink`]) start with an [intent](intents), from
//! which they are settled after an interruption.
//!
//! In a store that is written key by key nothing has commits: a change of one node is the change of its document, and what
//! takes more is ordered so that it can be repeated ([`erase_by_key`], [`reshape_by_key`]).

pub(crate) mod array_contexts;
mod conversion;
pub(crate) mod convert;
mod copied_chunks;
pub(crate) mod copy;
mod copy_commits;
pub(crate) mod create;
pub(crate) mod create_array;
pub(crate) mod describe;
pub(crate) mod differences;
pub(crate) mod erase;
pub(crate) mod erase_by_key;
pub(crate) mod hierarchies;
pub(crate) mod intents;
pub(crate) mod members;
pub(crate) mod options;
pub(crate) mod parent;
pub(crate) mod patch;
pub(crate) mod placement;
pub(crate) mod plan;
pub(crate) mod replace;
pub(crate) mod reshape_by_key;
pub(crate) mod resulting;
mod rewritten;
pub(crate) mod shrink;
pub(crate) mod shrinking_commit;
pub(crate) mod siblings;
pub(crate) mod stray_keys;
pub(crate) mod undecoded;
pub(crate) mod walk;
