//! Creating and replacing trees.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use zarrd_meta::{
    Dialect, NodePath,
    documents::write::{CONSOLIDATED, StoredNode, strip_consolidated},
    json::Change,
    zom::{Zom, ZomFormat},
};
use zarrd_operations::{IfExists, NodeRejection};
use zarrd_store::{Key, Version as StoreVersion};

use super::{
    describe::node_alone,
    placement::{LastDocument, NodePlacement},
    siblings::{self, document_keys},
    stray_keys,
};
use crate::{
    context::Context,
    metadata::{
        change_set::ChangeSet,
        consolidated::NodeChanges,
        copy_update::NodeChange,
        error::NodeError,
        keys::{self, is_at_or_below},
        model::{NodeModel, read_model},
        tree::{NodeKind, NodeTree},
    },
    node::{
        counterpart::{Counterpart, CounterpartNode},
        keys::{join_key, node_prefix},
        read_set::NodeVersions,
    },
};

/// The difference between an existing and a planned tree.
#[derive(Default)]
pub(crate) struct TreeDiff<'a> {
    /// The nodes to erase, with everything below them.
    erased: Vec<&'a NodeTree>,
    /// The nodes that get documents.
    set: Vec<NodePlacement<'a>>,
    /// The changes of nodes that get no documents, or none of these.
    pub(crate) node_changes: Vec<NodeChange>,
}

impl NodeChanges for TreeDiff<'_> {
    fn concern(&self, dialect: Dialect) -> bool {
        self.node_changes.concern(dialect) || self.set.iter().any(|placement| placement.node.dialect == dialect)
    }

    fn all(&self) -> Cow<'_, [NodeChange]> {
        let mut all = self.node_changes.clone();
        let mut last = LastDocument::default();
        for placement in &self.set {
            let (node, stored) = (placement.node, placement.documents(&mut last));
            let document = match node.dialect {
                Dialect::V3 => StoredNode::single_document(strip_consolidated(&stored.document)),
                _ => stored,
            };
            record_change(&mut all, &node.path, node.dialect, Some(document));
        }
        all.into()
    }
}

impl<'a> TreeDiff<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.erased.is_empty() && self.set.is_empty()
    }

    /// Creates a tree where nothing exists.
    pub(crate) fn create(&mut self, planned: &'a NodeTree) {
        self.set.extend(planned.all().into_iter().map(NodePlacement::new));
    }

    /// Gives documents to the implicit groups of an equal tree.
    pub(crate) fn materialize_implicit(&mut self, current: &NodeTree, planned: &'a NodeTree) {
        if current.is_implicit() {
            self.set.push(NodePlacement::new(planned));
        }
        let (Some(members), Some(planned)) = (&current.members, &planned.members) else { return };
        for (name, planned) in planned {
            if let Some(member) = members.get(name) {
                self.materialize_implicit(member, planned);
            }
        }
    }

    /// Adds what is missing of a tree: the documents of implicit groups, and nodes that there are not.
    pub(crate) fn complete(&mut self, current: &NodeTree, planned: &'a NodeTree) {
        if current.is_implicit() {
            self.set.push(NodePlacement::new(planned));
        }
        for (name, planned) in planned.members.iter().flatten() {
            match current.members.as_ref().and_then(|members| members.get(name)) {
                Some(member) => self.complete(member, planned),
                None => self.create(planned),
            }
        }
    }

    /// Replaces a tree, except for nodes that stay as they are.
    pub(crate) fn replace(&mut self, current: &'a NodeTree, planned: &'a NodeTree) -> Result<(), NodeError> {
        let stays = match (current.kind, planned.kind) {
            _ if current.broken.is_some() => false,
            (NodeKind::Group, NodeKind::Group) => true,
            (NodeKind::Array, NodeKind::Array) => has_same_chunks(current, planned)?,
            _ => false,
        };
        if !stays {
            self.erased.push(current);
            self.create(planned);
            return Ok(());
        }
        let copies = current.stored.document.get(CONSOLIDATED).filter(|_| current.dialect == Dialect::V3);
        let stored = copies.map(|copies| {
            let mut stored = planned.stored.formatted();
            stored.document = stored.document.with(CONSOLIDATED, Change::SetFormatted(copies));
            stored
        });
        if current.is_implicit() || !stored.as_ref().unwrap_or(&planned.stored).is_equivalent(&current.stored) {
            self.set.push(NodePlacement::replacing(&current.own, planned, stored));
        }
        let (Some(members), Some(planned)) = (&current.members, &planned.members) else { return Ok(()) };
        for (name, member) in members {
            match planned.get(name) {
                Some(planned) => self.replace(member, planned)?,
                None => self.erased.push(member),
            }
        }
        for (name, planned) in planned {
            if !members.contains_key(name) {
                self.create(planned);
            }
        }
        Ok(())
    }

    /// Replaces what the other one of v2 and v3 has at the path of the topmost node, if that node stays: the attributes of
    /// a group, and everything else by nothing. The counterpart of an array is erased with each change of the array.
    pub(crate) fn replace_counterpart(
        &mut self,
        change_set: &mut ChangeSet,
        current: &'a NodeTree,
        planned: &'a NodeTree,
        counterpart: &Counterpart,
    ) -> Result<(), NodeError> {
        if self.erased.iter().any(|erased| erased.path == current.path) {
            return Ok(());
        }
        let Counterpart { node, versions, .. } = counterpart;
        versions.0.iter().for_each(|(key, version)| change_set.record_read(key, *version));
        match (node, read_model(planned)?) {
            (_, NodeModel::Array(_)) => {
                if counterpart.differs() && !self.set.iter().any(|placement| placement.node.path == planned.path) {
                    self.set.push(NodePlacement::replacing(&current.own, planned, None));
                }
            }
            (CounterpartNode::Group(other), NodeModel::Group(planned)) => {
                let before = StoredNode::new(other.dialect, &other.document, &other.attributes);
                let after = match other.dialect {
                    Dialect::V2 => StoredNode::new(other.dialect, &other.document, &planned.attributes),
                    Dialect::V3 | Dialect::Draft => {
                        let attributes = Change::SetFormatted(planned.attributes);
                        StoredNode::single_document(other.document.with("attributes", attributes))
                    }
                };
                if change_set.rewrite(versions, Some(&before), &after) {
                    record_change(&mut self.node_changes, &current.path, other.dialect, Some(after));
                }
            }
            (CounterpartNode::Array(_) | CounterpartNode::Unreadable, NodeModel::Group(_)) => {
                versions.keys().cloned().for_each(|key| change_set.erase(key));
                let other = if planned.dialect == Dialect::V2 { Dialect::V3 } else { Dialect::V2 };
                record_change(&mut self.node_changes, &current.path, other, None);
            }
        }
        Ok(())
    }

    /// Adds the difference to a change set. `top` is the topmost planned node.
    pub(crate) async fn apply(
        &mut self,
        context: &Context,
        change_set: &mut ChangeSet,
        top: &NodeTree,
        existing: IfExists,
    ) -> Result<(), NodeError> {
        let mut erased_paths = BTreeSet::new();
        for node in std::mem::take(&mut self.erased) {
            erased_paths.insert(node.path.clone());
            let extent = keys::subtree_keys(&node.path, node.dialect, node.root.as_ref())?;
            for (key, version) in &node.own.0 {
                change_set.record_read(key, *version);
            }
            extent.prefixes.into_iter().for_each(|prefix| change_set.erase_prefix(prefix));
            // The entry point of the draft hierarchy stays.
            for key in extent.keys.into_iter().filter(|key| !key.as_str().ends_with("zarr.json")) {
                change_set.erase(key);
            }
            record_erased(&mut self.node_changes, &node.path, node.dialect);
        }
        let empty = stray_keys::empty_prefixes(context, &self.set).await?;
        // Documents of a draft hierarchy are not below the prefixes of its nodes.
        let is_draft = self.set.iter().any(|placement| placement.node.dialect == Dialect::Draft);
        let siblings = match empty {
            Some(_) if !is_draft => BTreeMap::new(),
            Some(_) | None => siblings::find(context, top, &self.set).await?,
        };
        match empty {
            // An existing node at the path would have been read.
            Some(places) => places.into_iter().for_each(|place| change_set.check_empty(place)),
            None => {
                let erased = stray_keys::settle(context, change_set, &self.set, &erased_paths, existing).await?;
                erased.iter().for_each(|array| record_erased(&mut self.node_changes, &array.path, array.dialect));
            }
        }
        let mut last = LastDocument::default();
        let with_attributes = self.set.iter().filter(|placement| placement.node.dialect == Dialect::V2).count();
        change_set.reserve(self.set.len().saturating_add(with_attributes));
        for placement in &self.set {
            let NodePlacement { before, node, .. } = placement;
            let is_erased = is_at_or_below(&erased_paths, &node.path);
            if let Some(found) = conflicting_dialect(placement, &siblings)
                && !is_erased
            {
                let path = node.path.clone();
                return Err(NodeError::Rejected(NodeRejection::DialectConflict { path, dialect: found }));
            }
            // Nothing was resolved below a broken node, so its members are erased with it at their current versions.
            let orphan = orphan(placement, &siblings)?.filter(|_| !is_erased);
            let is_orphan = orphan.is_some();
            if let Some(key) = orphan.filter(|_| existing == IfExists::Fail) {
                let path = node.path.clone();
                return Err(NodeError::Rejected(NodeRejection::StrayKeys { key, path }));
            }
            let erased = if is_erased || is_orphan { &siblings } else { &BTreeMap::new() };
            place_documents(change_set, placement, &placement.documents(&mut last), &siblings, erased)?;
            if !is_erased {
                record_other_dialect(change_set, node, &siblings);
            }
            erase_counterpart(&mut self.node_changes, change_set, node, before, &siblings);
        }
        Ok(())
    }
}

/// Erases the same array in the other of v2 and v3, which would otherwise keep its old metadata.
fn erase_counterpart(
    node_changes: &mut Vec<NodeChange>,
    change_set: &mut ChangeSet,
    node: &NodeTree,
    before: &NodeVersions,
    siblings: &BTreeMap<Key, StoreVersion>,
) {
    let (other, names): (_, &[&str]) = match node.dialect {
        Dialect::V3 => (Dialect::V2, &[".zarray", ".zattrs"]),
        Dialect::V2 => (Dialect::V3, &["zarr.json"]),
        Dialect::Draft => return,
    };
    let Ok(prefix) = node_prefix(&node.path) else { return };
    if before.0.is_empty() || node.kind != NodeKind::Array {
        return;
    }
    let other_documents: Vec<Key> =
        names.iter().filter_map(|name| join_key(&prefix, name)).filter(|key| siblings.contains_key(key)).collect();
    if other_documents.is_empty() {
        return;
    }
    for key in other_documents {
        change_set.erase(key);
    }
    record_change(node_changes, &node.path, other, None);
}

/// Makes the commit depend on what the other one of v2 and v3 has at the path of a node, or has not.
fn record_other_dialect(change_set: &mut ChangeSet, node: &NodeTree, siblings: &BTreeMap<Key, StoreVersion>) {
    let names: &[&str] = match node.dialect {
        Dialect::V3 => &[".zarray", ".zgroup"],
        Dialect::V2 => &["zarr.json"],
        Dialect::Draft => return,
    };
    let Ok(prefix) = node_prefix(&node.path) else { return };
    for key in names.iter().filter_map(|name| join_key(&prefix, name)) {
        change_set.record_read(&key, siblings.get(&key).copied());
    }
}

/// Records that a node is erased with everything below it, which has documents of both v2 and v3.
fn record_erased(node_changes: &mut Vec<NodeChange>, path: &NodePath, dialect: Dialect) {
    if dialect != Dialect::Draft {
        [Dialect::V2, Dialect::V3].into_iter().for_each(|dialect| record_change(node_changes, path, dialect, None));
    }
}

/// Records the change of a node, if consolidated metadata can have it.
fn record_change(node_changes: &mut Vec<NodeChange>, path: &NodePath, dialect: Dialect, node: Option<StoredNode>) {
    if dialect != Dialect::Draft {
        node_changes.push(NodeChange { path: path.clone(), dialect, node });
    }
}

/// True if two arrays differ in nothing but attributes and dimension names.
fn has_same_chunks(current: &NodeTree, planned: &NodeTree) -> Result<bool, NodeError> {
    let format = ZomFormat::for_dialect(current.dialect);
    let zom = |array: &NodeTree| node_alone(array, format).map(|root| Zom { format, root });
    let differences = Zom::differences(&zom(planned)?, &zom(current)?, usize::MAX);
    let siblings = |pointer: &str| {
        let mut parts = pointer.split('/').skip(1);
        matches!(parts.next(), Some("attributes" | "dimension_names"))
    };
    Ok(differences.iter().all(|difference| siblings(&difference.pointer)))
}

/// The dialect of other documents in the place of a new node's.
fn conflicting_dialect(placement: &NodePlacement<'_>, siblings: &BTreeMap<Key, StoreVersion>) -> Option<Dialect> {
    if siblings.is_empty() || !placement.is_new() {
        return None;
    }
    let node = placement.node;
    let prefix = node_prefix(&node.path).ok()?;
    let has = |name: &str| join_key(&prefix, name).is_some_and(|key| siblings.contains_key(&key));
    match node.dialect {
        // A node of v3 would have been found.
        Dialect::V3 if has("zarr.json") => Some(Dialect::Draft),
        Dialect::V3 if has(".zarray") || has(".zgroup") => Some(Dialect::V2),
        Dialect::V2 if has("zarr.json") => Some(Dialect::V3),
        _ => None,
    }
}

/// The key of a draft document at the place of a new node that belongs to no node, because its hierarchy lost its entry
/// point.
fn orphan(placement: &NodePlacement<'_>, siblings: &BTreeMap<Key, StoreVersion>) -> Result<Option<Key>, NodeError> {
    let node = placement.node;
    if node.dialect != Dialect::Draft || !placement.is_new() {
        return Ok(None);
    }
    Ok(document_keys(node)?.into_iter().next().filter(|key| siblings.contains_key(key)))
}

/// Adds the documents of a node to a change set; `erased` has the versions of documents that the same commit erases
/// first.
fn place_documents(
    change_set: &mut ChangeSet,
    NodePlacement { before, node, .. }: &NodePlacement<'_>,
    stored: &StoredNode,
    siblings: &BTreeMap<Key, StoreVersion>,
    erased: &BTreeMap<Key, StoreVersion>,
) -> Result<(), NodeError> {
    let expected = |key: &Key| before.0.iter().find(|(own, _)| own == key).map(|(_, version)| *version);
    // Equal keys share their text.
    let shared = |key: Key| before.keys().find(|own| **own == key).cloned().unwrap_or(key);
    let mut keys = document_keys(node)?.into_iter().map(shared);
    if let Some(key) = keys.next() {
        change_set.record_read(&key, expected(&key).unwrap_or_else(|| erased.get(&key).copied()));
        change_set.set(key, stored.document.to_bytes());
    }
    if let Some(key) = keys.next() {
        // An erased node may have left attributes behind.
        let current = siblings.get(&key).copied();
        change_set.record_read(&key, expected(&key).unwrap_or(current));
        match &stored.attributes {
            Some(attributes) => change_set.set(key, attributes.to_bytes()),
            None if current.is_some() => change_set.erase(key),
            None => {}
        }
    }
    Ok(())
}
