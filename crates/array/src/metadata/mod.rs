//! Metadata documents: the trees that they make, and the changes of them that one commit makes.
//!
//! - [`tree::NodeTree`]: nodes with their stored documents; [`model::NodeModel`] is what the documents of one say;
//! - [`change_set::ChangeSet`]: the documents that a commit writes and erases, and the versions that it was planned on;
//! - [`array_update`]: the change of an array's shape or attributes, in every dialect that the node has;
//! - [`consolidated`]: the copies of changed documents in the consolidated metadata of groups above, as a
//!   [`copy_update`];
//! - [`shared_commit`]: one commit for many writers below a group with consolidated metadata, who wait in a
//!   [`commit_queue`];
//! - [`keys`]: the keys of a node and of everything below it.

pub(crate) mod array_update;
pub(crate) mod change_set;
pub(crate) mod commit_queue;
pub(crate) mod consolidated;
pub(crate) mod copy_update;
pub(crate) mod error;
pub(crate) mod intent_record;
pub(crate) mod keyed_commit;
pub(crate) mod keys;
pub(crate) mod model;
pub(crate) mod shared_commit;
pub(crate) mod tree;
