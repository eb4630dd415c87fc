//! Rights of a request on nodes other than the one that it names.

use zarrd_meta::NodePath;

/// The rights of a request on nodes that it does not name, but that the engine would read or change on its behalf: the
/// targets of links, and missing groups above a new node.
///
/// The caller of the engine authorizes the node that a request names. Consolidated metadata above it is maintained
/// whatever the rights are.
pub trait NodeRights: Send + Sync {
    /// True if the request may read the node at `path` and everything below it.
    fn can_read(&self, path: &NodePath) -> bool;

    /// True if the request may change the node at `path` and everything below it.
    fn can_write(&self, path: &NodePath) -> bool;
}
