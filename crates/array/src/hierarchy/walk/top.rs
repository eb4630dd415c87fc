//! Resolving single nodes: the topmost one of a walk, and those of draft hierarchies.

use std::{iter::once, sync::Arc};

use zarrd_executor::{Cost, Work};
use zarrd_meta::{Dialect, NodePath};

use super::{
    documents::Check,
    mode::Top,
    walker::{RESERVED, WalkItem, Walker},
};
use crate::{
    error::ArrayError,
    metadata::{
        error::NodeError,
        keys,
        tree::{NodeKind, NodeTree, array_tree, group_tree, implicit},
    },
    node::{
        broken::Broken,
        documents::Documents,
        keys::node_prefix,
        resolved::{DraftHierarchy, ResolvedNode},
    },
};

impl Walker<'_> {
    /// Resolves the topmost node.
    pub(crate) async fn top(&mut self, path: &NodePath, dialect: Option<Dialect>) -> Result<(), NodeError> {
        let resolved = match self.context.resolve_node(path, dialect).await {
            // An array can be described without its codecs.
            Err(error @ ArrayError::Chain { .. }) => return self.unopened_top(path, dialect, error).await,
            Err(error @ ArrayError::Document { .. }) if self.top == Top::Any => {
                return self.unopened_top(path, dialect, error).await;
            }
            resolved => resolved?,
        };
        let counterpart = match &resolved {
            Some(ResolvedNode::Array(resolved)) => resolved.counterpart.as_ref(),
            Some(ResolvedNode::Group(resolved)) => resolved.counterpart.as_ref(),
            None => None,
        };
        self.relation = counterpart.map(|counterpart| counterpart.relation);
        let (documents, branch) = match resolved {
            Some(ResolvedNode::Array(resolved)) => (Some(resolved.read_set.clone()), array_tree(path, &resolved)),
            Some(ResolvedNode::Group(resolved)) => (Some(resolved.read_set.clone()), group_tree(path, *resolved)),
            None => {
                let dialect = self.implied(path, dialect).await?;
                let none = ArrayError::NoSuchNode { path: path.clone() };
                (None, implicit(path.clone(), dialect.ok_or(none)?, None))
            }
        };
        self.reader.versions_read.extend(documents.iter().flat_map(|documents| documents.versions().to_vec()));
        let found = self.reader.documents(std::slice::from_ref(path), Check::Syntax).await?.pop();
        let documents = found.unwrap_or_default();
        let reserved = if documents.has_entry() { RESERVED } else { &[] };
        // Of a distant store, the node was resolved without reading its other documents.
        if self.relation.is_none() && self.reader.distant {
            let cost = Cost::of(Work::Documents, documents.size() as u64);
            self.relation = self.context.run(cost, move || documents.relation()).await?;
        }
        self.push_top(branch, reserved)
    }

    /// The topmost node if it cannot be opened: an array of v2 or v3 with unknown codecs, or a broken node.
    async fn unopened_top(
        &mut self,
        path: &NodePath,
        dialect: Option<Dialect>,
        error: ArrayError,
    ) -> Result<(), NodeError> {
        let mut found = self.reader.documents(std::slice::from_ref(path), Check::Model).await?;
        let documents = found.first_mut();
        let own = documents.and_then(|documents| {
            let preferred = documents.dialects().into_iter().find(|has| dialect.is_none_or(|dialect| dialect == *has));
            preferred.and_then(|dialect| documents.branch(path, dialect))
        });
        let branch = match own {
            Some(branch) => Some(branch),
            None if self.top == Top::Any => self.draft_node(path).await?,
            None => None,
        };
        match branch {
            Some(branch) => self.push_top(marked(branch, &error), &[]),
            None => Err(error.into()),
        }
    }

    fn push_top(&mut self, branch: NodeTree, reserved: &'static [&'static str]) -> Result<(), NodeError> {
        match (&branch.broken, self.top) {
            (Some(broken), Top::Readable) => Err(ArrayError::Broken(Broken::clone(broken)).into()),
            _ => {
                self.items.push(WalkItem::new(branch, None, 0, reserved));
                Ok(())
            }
        }
    }

    /// The node of a draft hierarchy at a path, from its own documents only.
    async fn draft_node(&mut self, path: &NodePath) -> Result<Option<NodeTree>, NodeError> {
        let roots: Vec<NodePath> = once(path.clone()).chain(path.ancestors()).collect();
        let found = self.reader.documents(&roots, Check::Syntax).await?;
        let Some((at, mut documents)) = roots.into_iter().zip(found).find(|(_, documents)| documents.has_entry())
        else {
            return Ok(None);
        };
        let Some(entry) = documents.entry_point() else {
            return Ok(documents.branch(&at, Dialect::Draft).filter(|_| at == *path));
        };
        let root = Arc::new(DraftHierarchy { prefix: node_prefix(&at)?, path: at, entry_point: entry });
        for kind in [NodeKind::Array, NodeKind::Group] {
            let keys = keys::document_keys(path, Dialect::Draft, kind, Some(&root))?;
            let values = self.reader.read(&keys).await?;
            let found = keys.into_iter().zip(values).find_map(|(key, value)| value.map(|value| (key, value)));
            if let Some((key, value)) = found {
                let found = vec![(path.clone(), kind, key, value)];
                return Ok(self.reader.draft_branches(&root, found).await?.pop());
            }
        }
        Ok(None)
    }

    pub(crate) async fn entry_point_at(&mut self, path: &NodePath) -> Result<bool, NodeError> {
        let found = self.reader.documents(std::slice::from_ref(path), Check::Syntax).await?;
        Ok(found.first().is_some_and(Documents::has_entry))
    }

    /// The topmost node, if it is in a draft hierarchy.
    pub(crate) async fn draft_root(&mut self, path: &NodePath) -> Result<Option<NodeTree>, NodeError> {
        let (documents, branch) = match self.context.resolve_node(path, Some(Dialect::Draft)).await {
            Ok(Some(ResolvedNode::Array(resolved))) => (resolved.read_set.clone(), array_tree(path, &resolved)),
            Ok(Some(ResolvedNode::Group(resolved))) => (resolved.read_set.clone(), group_tree(path, *resolved)),
            Ok(None) => return Ok(None),
            Err(error @ (ArrayError::Document { .. } | ArrayError::Chain { .. })) => {
                return Ok(self.draft_node(path).await?.map(|branch| marked(branch, &error)));
            }
            Err(error) => return Err(error.into()),
        };
        self.reader.versions_read.extend(documents.versions().to_vec());
        Ok(Some(branch))
    }
}

/// Marks a node that could not be opened as broken, unless only its codecs are unknown.
fn marked(branch: NodeTree, error: &ArrayError) -> NodeTree {
    let broken = match error {
        ArrayError::Document { key, source } => branch.broken.or_else(|| Some(Box::new(Broken::new(key, source)))),
        _ => branch.broken,
    };
    NodeTree { broken, ..branch }
}
