//! Pages of a group's members.

use zarrd_meta::{Dialect, NodePath};
use zarrd_store::Cursor;

use super::{
    describe::describe,
    hierarchies::Hierarchies,
    options::DescribedNode,
    walk::{
        mode::{DialectMode, Window},
        page::walk_page,
    },
};
use crate::metadata::error::NodeError;

/// The most members of one page.
pub const MAX_MEMBERS: usize = 10_000;

/// A requested page of members.
#[derive(Clone, Debug)]
pub struct MemberPage {
    /// The number of members at most; capped at [`MAX_MEMBERS`].
    pub limit: usize,
    /// The cursor of the page before; `None` for the first page.
    pub cursor: Option<Cursor>,
    /// The treatment of what is directly below the group and belongs to no node.
    pub files: FileListing,
}

/// The treatment of keys and prefixes directly below a group that belong to no node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileListing {
    /// They are left out.
    #[default]
    Omitted,
    /// They are [listed](DescribedNode::files), and count as members do in the limit of a page.
    Listed,
}

/// A node with a page of its members, as of one commit. The next page may be of a later one.
#[derive(Clone, Debug)]
pub struct Members {
    /// The node, with the members of the page, whose own members are left out.
    pub node: DescribedNode,
    /// The cursor of the next page; `None` for the last.
    pub next: Option<Cursor>,
}

impl Hierarchies {
    /// Describes the node at a path with a page of its members; otherwise as [`node`](Self::node). The cost is
    /// proportional to the page, whatever the size of the group.
    ///
    /// Pages are in the order of the members' keys. A page may have fewer members than requested, or none; only the
    /// last has no cursor. A cursor of another group is an error:
    /// [`StoreError::InvalidCursor`](zarrd_store::StoreError::InvalidCursor).
    pub async fn members(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        page: &MemberPage,
        mapped: Option<Dialect>,
    ) -> Result<Members, NodeError> {
        let mode = if mapped.is_some() { DialectMode::Each } else { DialectMode::Same };
        let files = (page.files == FileListing::Listed).then(Vec::new);
        let window = Window { limit: page.limit.clamp(1, MAX_MEMBERS), cursor: page.cursor.clone(), files };
        let (walk, next) = walk_page(&self.0, path, dialect, mode, &window).await?;
        Ok(Members { node: describe(&self.0, walk, mapped).await?, next })
    }
}
