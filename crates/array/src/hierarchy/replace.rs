//! Putting nodes where there are none, or others.

use std::collections::{BTreeMap, BTreeSet};

use meta::{
    Dialect, NodePath,
    documents::write::{CONSOLIDATED, StoredNode, without_copies},
    json::Change,
    zom::{Version, Zom},
};
use store::{Key, Version as StoreVersion};

use super::{
    Existing, NodeError,
    consolidated::Told,
    edits::Edits,
    found::{Untold, told},
    keys, strays,
    walk::{Branch, Form, NAMES},
};
use crate::{
    find::{Own, key_below, prefix},
    shared::Shared,
};

/// How many nodes are looked at with one snapshot.
const BATCH: usize = 4096;

/// What becomes of nodes.
#[derive(Default)]
pub(super) struct Replacement {
    /// The nodes that go, with all below them.
    gone: Vec<Branch>,
    /// The nodes that get a document, with what they have.
    set: Vec<(Own, Branch)>,
    pub(super) told: Vec<Told>,
}

impl Replacement {
    pub(super) fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.set.is_empty()
    }

    /// Nothing is there.
    pub(super) fn create(&mut self, planned: &Branch) {
        for node in planned.all() {
            self.put(Own::default(), node);
        }
    }

    fn put(&mut self, before: Own, planned: &Branch) {
        self.set.push((before, Branch { members: None, ..planned.clone() }));
    }

    /// What is there is equal, but for groups without a document.
    pub(super) fn fill(&mut self, current: &Branch, planned: &Branch) {
        if current.is_implicit() {
            self.put(Own::default(), planned);
        }
        let (Some(members), Some(planned)) = (&current.members, &planned.members) else { return };
        for (name, planned) in planned {
            if let Some(member) = members.get(name) {
                self.fill(member, planned);
            }
        }
    }

    /// What is there is put out of the way, but for what stays as it is.
    pub(super) fn replace(&mut self, current: &Branch, planned: &Branch) -> Result<(), NodeError> {
        let stays = match (current.form, planned.form) {
            _ if current.broken.is_some() => false,
            (Form::Group, Form::Group) => true,
            (Form::Array, Form::Array) => has_same_chunks(current, planned)?,
            _ => false,
        };
        if !stays {
            self.gone.push(Branch { members: None, ..current.clone() });
            self.create(planned);
            return Ok(());
        }
        let mut stored = planned.stored.clone();
        if let Some(copies) = current.stored.document.get(CONSOLIDATED).filter(|_| current.dialect == Dialect::V3) {
            stored.document = stored.document.with(CONSOLIDATED, Change::SetFormatted(copies));
        }
        if current.is_implicit() || !stored.says_the_same(&current.stored) {
            self.put(current.own.clone(), &Branch { stored, ..planned.clone() });
        }
        let (Some(members), Some(planned)) = (&current.members, &planned.members) else { return Ok(()) };
        for (name, member) in members {
            match planned.get(name) {
                Some(planned) => self.replace(member, planned)?,
                None => self.gone.push(Branch { members: None, ..member.clone() }),
            }
        }
        for (name, planned) in planned {
            if !members.contains_key(name) {
                self.create(planned);
            }
        }
        Ok(())
    }

    /// Adds all of it to a commit.
    pub(super) async fn apply(
        &mut self,
        shared: &Shared,
        edits: &mut Edits,
        existing: Existing,
    ) -> Result<(), NodeError> {
        for node in &self.gone {
            let extent = keys::extent(&node.path, node.dialect, node.root.as_ref())?;
            for (key, version) in &node.own.0 {
                edits.saw(key, *version);
            }
            extent.prefixes.into_iter().for_each(|prefix| edits.erase_prefix(prefix));
            // The entry point of a hierarchy of the draft stays.
            for key in extent.keys.into_iter().filter(|key| !key.as_str().ends_with("zarr.json")) {
                edits.erase(key);
            }
            tell(&mut self.told, &node.path, node.dialect, None);
        }
        let gone: BTreeSet<NodePath> = self.gone.iter().map(|node| node.path.clone()).collect();
        let empty = strays::empty_place(shared, &self.set).await?;
        // The documents of a draft hierarchy are not below the prefixes of its nodes.
        let is_draft = self.set.iter().any(|(_, node)| node.dialect == Dialect::Draft);
        let beside = match empty {
            Some(_) if !is_draft => BTreeMap::new(),
            Some(_) | None => beside(shared, &self.set).await?,
        };
        strays::settle(shared, edits, &self.set, &gone, existing, empty).await?;
        for (before, node) in std::mem::take(&mut self.set) {
            let is_gone = is_at_or_below(&gone, &node.path);
            if let Some(found) = in_the_way(&node, &before, &beside)
                && !is_gone
            {
                return Err(NodeError::OtherDialect { path: node.path, found });
            }
            // Below a broken node nothing was resolved, so its members are erased with it at the versions that they have.
            let orphan = orphan(&node, &before, &beside).filter(|_| !is_gone);
            if let Some(key) = orphan.filter(|_| existing == Existing::Keep) {
                return Err(NodeError::StrayKeys { key: key.clone(), path: node.path });
            }
            let erased = if is_gone || orphan.is_some() { &beside } else { &BTreeMap::new() };
            place_documents(edits, &node, &before, &beside, erased);
            self.erase_twin(edits, &node, &before, &beside);
            let told = match node.dialect {
                Dialect::V3 => StoredNode::whole(without_copies(&node.stored.document)),
                _ => node.stored,
            };
            tell(&mut self.told, &node.path, node.dialect, Some(told));
        }
        Ok(())
    }

    /// The same array in the other of v2 and v3 would go on saying what it said, so that it goes.
    fn erase_twin(&mut self, edits: &mut Edits, node: &Branch, before: &Own, beside: &BTreeMap<Key, StoreVersion>) {
        let (other, names): (_, &[&str]) = match node.dialect {
            Dialect::V3 => (Dialect::V2, &[".zarray", ".zattrs"]),
            Dialect::V2 => (Dialect::V3, &["zarr.json"]),
            Dialect::Draft => return,
        };
        let Ok(prefix) = prefix(&node.path) else { return };
        if before.0.is_empty() || node.form != Form::Array {
            return;
        }
        let there: Vec<Key> =
            names.iter().filter_map(|name| key_below(&prefix, name)).filter(|key| beside.contains_key(key)).collect();
        if there.is_empty() {
            return;
        }
        for key in there {
            edits.erase(key);
        }
        tell(&mut self.told, &node.path, other, None);
    }
}

/// Whether a node, or one that holds it, is among those that go.
pub(super) fn is_at_or_below(gone: &BTreeSet<NodePath>, path: &NodePath) -> bool {
    gone.contains(path) || path.ancestors().any(|above| gone.contains(&above))
}

/// Tells of a node, where there can be consolidated metadata that has it.
fn tell(told: &mut Vec<Told>, path: &NodePath, dialect: Dialect, node: Option<StoredNode>) {
    if dialect != Dialect::Draft {
        told.push(Told { path: path.clone(), dialect, node });
    }
}

/// Whether two arrays differ in attributes and names of dimensions at the most.
fn has_same_chunks(current: &Branch, planned: &Branch) -> Result<bool, NodeError> {
    let version = Version::of(current.dialect);
    let zom = |branch: &Branch| -> Result<Zom, NodeError> {
        Ok(Zom { version, root: told(branch.clone(), version, &mut Untold::default())? })
    };
    let differences = Zom::differences(&zom(planned)?, &zom(current)?, usize::MAX);
    let beside = |pointer: &str| {
        let mut parts = pointer.split('/').skip(1);
        matches!(parts.next(), Some("attributes" | "dimension_names"))
    };
    Ok(differences.iter().all(|difference| beside(&difference.pointer)))
}

/// The versions of the documents of all dialects that there are at the paths of some nodes.
async fn beside(shared: &Shared, set: &[(Own, Branch)]) -> Result<BTreeMap<Key, StoreVersion>, NodeError> {
    let mut found = BTreeMap::new();
    for nodes in set.chunks(BATCH) {
        let mut keys = Vec::new();
        for (_, node) in nodes {
            match node.dialect {
                Dialect::Draft => keys.extend(node.own.0.iter().map(|(key, _)| key.clone())),
                Dialect::V2 | Dialect::V3 => {
                    let prefix = prefix(&node.path)?;
                    keys.extend(NAMES.iter().filter_map(|name| key_below(&prefix, name)));
                }
            }
        }
        let snapshot = shared.store.snapshot(&keys).await?;
        for key in keys {
            if let Some(info) = snapshot.head(&key)? {
                found.insert(key, info.version);
            }
        }
    }
    Ok(found)
}

/// The dialect of other documents that are where a new node would have its own.
fn in_the_way(node: &Branch, before: &Own, beside: &BTreeMap<Key, StoreVersion>) -> Option<Dialect> {
    if !before.0.is_empty() {
        return None;
    }
    let prefix = prefix(&node.path).ok()?;
    let has = |name: &str| key_below(&prefix, name).is_some_and(|key| beside.contains_key(&key));
    match node.dialect {
        // It is no node of v3, or it would have been found.
        Dialect::V3 if has("zarr.json") => Some(Dialect::Draft),
        Dialect::V3 if has(".zarray") || has(".zgroup") => Some(Dialect::V2),
        Dialect::V2 if has("zarr.json") => Some(Dialect::V3),
        _ => None,
    }
}

/// A document of a draft hierarchy at the place of a new node, which is no node because the hierarchy lost its entry point.
fn orphan<'n>(node: &'n Branch, before: &Own, beside: &BTreeMap<Key, StoreVersion>) -> Option<&'n Key> {
    let (key, _) = node.own.0.first().filter(|_| node.dialect == Dialect::Draft && before.0.is_empty())?;
    beside.contains_key(key).then_some(key)
}

/// Adds the documents of a node to a commit; `erased` has the versions of documents that the commit erases before.
fn place_documents(
    edits: &mut Edits,
    node: &Branch,
    before: &Own,
    beside: &BTreeMap<Key, StoreVersion>,
    erased: &BTreeMap<Key, StoreVersion>,
) {
    let expected = |key: &Key| before.0.iter().find(|(known, _)| known == key).map(|(_, version)| *version);
    let mut keys = node.own.0.iter().map(|(key, _)| key);
    if let Some(key) = keys.next() {
        edits.saw(key, expected(key).unwrap_or_else(|| erased.get(key).copied()));
        edits.set(key.clone(), node.stored.document.to_bytes());
    }
    if let Some(key) = keys.next() {
        // Attributes may have been left behind by a node that went.
        let there = beside.get(key).copied();
        edits.saw(key, expected(key).unwrap_or(there));
        match &node.stored.attributes {
            Some(attributes) => edits.set(key.clone(), attributes.to_bytes()),
            None if there.is_some() => edits.erase(key.clone()),
            None => {}
        }
    }
}
