//! The surroundings of a node that is to be created.

use std::sync::Arc;

use zarrd_meta::{
    Dialect, NodePath,
    documents::{draft, write::draft_entry_point},
    zom::{Members, ZomFormat},
};
use zarrd_operations::{Depth, NodeRejection};
use zarrd_store::{Key, Version as StoreVersion};

use super::{
    plan::{Target, check_name},
    walk::{
        mode::{Top, WalkOptions},
        walker::{Walk, ancestors, walk},
    },
};
use crate::{
    context::Context,
    error::ArrayError,
    metadata::{
        change_set::ChangeSet,
        copy_update::NodeChange,
        error::NodeError,
        keys,
        tree::{NodeKind, empty_group},
    },
    node::{
        counterpart::Counterpart,
        documents::Documents,
        keys::{invalid_document, join_key, node_prefix},
        resolved::{DraftHierarchy, ResolvedNode},
    },
};

/// The documents at a path, and those of the groups above it.
pub(crate) struct ParentContext {
    pub(crate) site: Target,
    /// The documents of the path and of each group above it, the path first.
    around: Vec<(NodePath, Documents)>,
    /// The versions that were read.
    versions_read: Vec<(Key, Option<StoreVersion>)>,
    /// The draft hierarchy that has to be created for the node.
    new_root: Option<Arc<DraftHierarchy>>,
    /// What the other one of v2 and v3 has at the path of an existing node.
    pub(crate) counterpart: Option<Arc<Counterpart>>,
}

impl ParentContext {
    /// Reads the surroundings of a path. Fails if no node can be created there.
    pub(crate) async fn find(
        context: &Context,
        path: &NodePath,
        dialect: Option<Dialect>,
        version: ZomFormat,
    ) -> Result<Self, NodeError> {
        if node_prefix(path).is_err() {
            return Err(keys::too_long(dialect.unwrap_or(version.dialect()), path));
        }
        let (around, versions_read) = ancestors(context, path).await?;
        let above = around.iter().skip(1);
        if let Some((array, _)) = above.clone().find(|(_, documents)| documents.has_array()) {
            return Err(NodeError::Rejected(NodeRejection::ParentIsArray { path: path.clone(), array: array.clone() }));
        }
        let existing = match context.resolve_node(path, dialect).await {
            Ok(Some(ResolvedNode::Array(resolved))) => Some(resolved.array.model().dialect),
            Ok(Some(ResolvedNode::Group(resolved))) => Some(resolved.dialect),
            // A node that cannot be opened exists, and can be replaced.
            Ok(None) | Err(ArrayError::Document { .. } | ArrayError::Chain { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let nearest = around.iter().find_map(|(_, documents)| documents.dialects().first().copied());
        // A ZOM of the v2 model is meant for v2; the v3 model is that of the draft too.
        let alike = |dialect: &Dialect| ZomFormat::for_dialect(*dialect) == version;
        let dialect = dialect.or(existing.filter(alike)).or(nearest.filter(alike)).unwrap_or(version.dialect());
        let counterpart = match context.resolve_node(path, Some(dialect)).await {
            Ok(Some(ResolvedNode::Array(resolved))) => resolved.counterpart.clone(),
            Ok(Some(ResolvedNode::Group(resolved))) => resolved.counterpart.clone(),
            Ok(None) | Err(ArrayError::Document { .. } | ArrayError::Chain { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let site = Target { dialect, root: None };
        let mut place = Self { site, around, versions_read, new_root: None, counterpart };
        if dialect == Dialect::Draft {
            place.find_root(context, path).await?;
        }
        Ok(place)
    }

    /// Finds the draft hierarchy that contains the path, or plans one that starts there.
    async fn find_root(&mut self, context: &Context, path: &NodePath) -> Result<(), NodeError> {
        let is_root = |(at, documents): &&(NodePath, Documents)| {
            // A broken entry point can be replaced at its own path.
            documents.has_entry() && (at != path || documents.broken(at).is_none())
        };
        let Some((at, _)) = self.around.iter().find(is_root) else {
            let key = entry_key(path)?;
            let entry =
                draft::entry_point(draft_entry_point().to_bytes()).map_err(|source| invalid_document(&key, source))?;
            let root = Arc::new(DraftHierarchy { path: path.clone(), prefix: node_prefix(path)?, entry_point: entry });
            self.new_root = Some(root.clone());
            self.site.root = Some(root);
            return Ok(());
        };
        let at = at.clone();
        let key = entry_key(&at)?;
        let Some(value) = context.store.get(&key, None).await? else {
            return Err(ArrayError::TooManyConflicts { path: path.clone() }.into());
        };
        let entry = draft::entry_point(value.bytes().await?).map_err(|source| invalid_document(&key, source))?;
        let root = Arc::new(DraftHierarchy { prefix: node_prefix(&at)?, path: at, entry_point: entry });
        let above = path.ancestors().filter(|above| above.relative_to(&root.path).is_some());
        let mut arrays = Vec::new();
        for above in above {
            let keys = keys::document_keys(&above, Dialect::Draft, NodeKind::Array, Some(&root))?;
            arrays.extend(keys.into_iter().map(|key| (above.clone(), key)));
        }
        let keys: Vec<Key> = arrays.iter().map(|(_, key)| key.clone()).collect();
        let snapshot = context.store.snapshot(&keys).await?;
        for (array, key) in arrays {
            if snapshot.meta(&key).await?.is_some() {
                return Err(NodeError::Rejected(NodeRejection::ParentIsArray { path: path.clone(), array }));
            }
            self.versions_read.push((key, None));
        }
        self.site.root = Some(root);
        Ok(())
    }

    /// The existing tree, be it broken.
    pub(crate) async fn current(&self, context: &Context, path: &NodePath) -> Result<Option<Walk>, NodeError> {
        if let Some(broken) = self.around.first().and_then(|(_, documents)| documents.broken(path)) {
            return Ok(Some(Walk {
                top: broken,
                other: Vec::new(),
                relation: None,
                files: None,
                unlisted: Vec::new(),
                memory: Vec::new(),
            }));
        }
        let options = WalkOptions { top: Top::Any, ..WalkOptions::new(Depth::All) };
        match walk(context, path, Some(self.site.dialect), options).await {
            Ok(walk) => {
                // The root group of v2 and v3 exists implicitly, and has nothing to build on.
                let nothing =
                    path.is_root() && walk.top.is_implicit() && walk.top.members.as_ref().is_none_or(Members::is_empty);
                Ok((!nothing).then_some(walk))
            }
            Err(NodeError::Array(ArrayError::NoSuchNode { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Fails if the path has documents of another dialect only. Broken documents count for none.
    pub(crate) fn check_dialects(&self, path: &NodePath) -> Result<(), NodeError> {
        let Some((_, documents)) = self.around.first() else { return Ok(()) };
        match documents.readable().next() {
            Some(found) if !documents.dialects().contains(&self.site.dialect) => {
                Err(NodeError::Rejected(NodeRejection::DialectConflict { path: path.clone(), dialect: found }))
            }
            _ => Ok(()),
        }
    }

    /// Checks the last name of the path of a new node; the root of a hierarchy has none.
    pub(crate) fn check_name(&self, path: &NodePath) -> Result<(), NodeError> {
        match &self.site.root {
            Some(root) if root.path == *path => Ok(()),
            _ => check_name(self.site.dialect, path),
        }
    }

    /// Creates the missing groups above the path: below the first that exists, in any dialect, but never the root
    /// group, and none that the request may not change.
    pub(crate) fn parents(
        &self,
        context: &Context,
        path: &NodePath,
        change_set: &mut ChangeSet,
        node_changes: &mut Vec<NodeChange>,
    ) -> Result<(), NodeError> {
        let dialect = self.site.dialect;
        if let Some(root) = &self.new_root {
            let key = entry_key(&root.path)?;
            change_set.record_read(&key, None);
            change_set.set(key, root.entry_point.document.to_bytes());
        }
        if dialect == Dialect::Draft {
            let root = self.site.root.as_ref();
            let inside = |node: &NodePath| {
                root.is_some_and(|root| node.relative_to(&root.path).is_some_and(|it| !it.is_empty()))
            };
            return path.ancestors().filter(inside).try_for_each(|node| check_name(dialect, &node));
        }
        let missing = self.around.iter().skip(1);
        let missing = missing.take_while(|(path, documents)| {
            !path.is_root() && documents.dialects().is_empty() && context.can_write(path)
        });
        for (path, _) in missing {
            check_name(dialect, path)?;
            let document = empty_group(dialect);
            if let Some(key) = keys::document_keys(path, dialect, NodeKind::Group, None)?.into_iter().next() {
                change_set.record_read(&key, None);
                change_set.set(key, document.document.to_bytes());
            }
            node_changes.push(NodeChange { path: path.clone(), dialect, node: Some(document) });
        }
        Ok(())
    }

    pub(crate) fn record_reads(&self, change_set: &mut ChangeSet) {
        for (key, version) in &self.versions_read {
            change_set.record_read(key, *version);
        }
    }
}

fn entry_key(path: &NodePath) -> Result<Key, NodeError> {
    join_key(&node_prefix(path)?, "zarr.json").ok_or_else(|| keys::too_long(Dialect::Draft, path))
}
