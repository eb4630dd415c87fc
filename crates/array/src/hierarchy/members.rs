//! Groups with their members page by page.

use meta::{Dialect, NodePath};
use store::Cursor;

use super::{
    describe::describe,
    hierarchies::Hierarchies,
    options::NodeInfo,
    walk::{
        mode::{DialectMode, Window},
        page::walk_page,
    },
};
use crate::metadata::error::NodeError;

/// The most members of one page.
pub const MAX_MEMBERS: usize = 10_000;

/// The members of a group that are wanted.
#[derive(Clone, Debug)]
pub struct MemberPage {
    /// The number at the most; more than [`MAX_MEMBERS`] is cut to that.
    pub limit: usize,
    /// The cursor of the page before, or `None` for the first page.
    pub cursor: Option<Cursor>,
}

/// A node with a page of its members, as of one commit. Another page may be of another one.
#[derive(Clone, Debug)]
pub struct Members {
    /// The node, with the members of the page; they are told without theirs.
    pub node: NodeInfo,
    /// The cursor for the next page, or `None` where this is the last.
    pub next: Option<Cursor>,
}

impl Hierarchies {
    /// The node at a path with a page of its members; otherwise as [`node`](Self::node). It costs what it returns, whatever else is in the group.
    ///
    /// Pages follow each other in the order of the members' keys. One may have fewer members than wanted, and none; the last is the one without a cursor. A cursor that was
    /// not given for the group fails with [`StoreError::InvalidCursor`](store::StoreError::InvalidCursor).
    pub async fn members(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        page: &MemberPage,
        mapped: Option<Dialect>,
    ) -> Result<Members, NodeError> {
        let mode = if mapped.is_some() { DialectMode::Each } else { DialectMode::Same };
        let window = Window { limit: page.limit.clamp(1, MAX_MEMBERS), cursor: page.cursor.clone() };
        let (walk, Window { cursor: next, .. }) = walk_page(&self.0, path, dialect, mode, &window).await?;
        Ok(Members { node: describe(&self.0, walk, mapped).await?, next })
    }
}
