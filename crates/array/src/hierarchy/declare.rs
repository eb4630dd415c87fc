//! Declaring a tree: creating it, finding it equal, or putting it in the place of another.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use meta::{
    Dialect, NodePath,
    documents::{
        draft,
        write::{draft_entry_point, split_v2, text},
    },
    zom::{MAX_VIOLATIONS, Version, Zom},
};
use serde_json::{Map, Value};
use store::{Key, MAX_COMMIT_CHANGES, Outcome, StoreError, Version as StoreVersion};

use super::{
    Declaration, Depth, Effect, Existing, Losses, NodeError,
    consolidated::{Told, V3_MEMBER, keep_true},
    edits::Edits,
    found::told,
    keys,
    plan::{Plan, Site, check_name},
    walk::{Branch, Documents, Form, Mode, NAMES, around, bare_group, walk},
};
use crate::{
    ArrayError,
    find::{DraftRoot, Own, Sight, key_below, prefix, wrong},
    shared::Shared,
};

/// What is around the place of a declaration.
pub(super) struct Place {
    pub(super) site: Site,
    /// The documents of the path and of the groups above it, the path first.
    around: Vec<(NodePath, Documents)>,
    /// What all of this depends on.
    seen: Vec<(Key, Option<StoreVersion>)>,
    /// Where a hierarchy of the draft begins that is not there yet.
    new_root: Option<Arc<DraftRoot>>,
}

/// One attempt to declare a tree; `None` where somebody else changed what it depended on.
pub(super) async fn attempt(
    shared: &Shared,
    path: &NodePath,
    zom: &Zom,
    declaration: &Declaration,
) -> Result<Option<(Effect, Dialect)>, NodeError> {
    let place = Place::find(shared, path, declaration.dialect, zom.version).await?;
    let current = place.current(shared, path).await?;
    let version = current.as_ref().filter(|top| !top.is_implicit()).map(|top| top.own.version());
    if !declaration.condition.holds(version) {
        return Err(NodeError::PreconditionFailed { path: path.clone(), current: version });
    }
    place.check_dialects(path)?;
    let dialect = place.site.dialect;
    let (zom, site, at) = (zom.clone(), place.site.clone(), path.clone());
    let planned = tokio::task::spawn_blocking(move || Plan::new(&at, &zom, &site));
    let plan = planned.await.map_err(|_| ArrayError::Stopped)??;
    if declaration.losses == Losses::Refuse && !plan.losses.is_empty() {
        return Err(NodeError::Lossy { dialect, losses: plan.losses });
    }
    let mut edits = Edits::default();
    let mut change = Replacement::default();
    let effect = match &current {
        None => {
            place.check_name(path)?;
            change.create(&plan.top);
            Effect::Created
        }
        Some(current) => {
            let differences = differences(&plan, current)?;
            if differences.is_empty() {
                change.fill(current, &plan.top);
                match (change.is_empty(), current.is_implicit()) {
                    (true, _) => return Ok(Some((Effect::Equal, dialect))),
                    (false, true) => Effect::Created,
                    (false, false) => Effect::Replaced,
                }
            } else if declaration.existing == Existing::Replace {
                change.replace(current, &plan.top)?;
                Effect::Replaced
            } else {
                return Err(NodeError::Differs { path: path.clone(), differences });
            }
        }
    };
    change.apply(shared, &mut edits).await?;
    place.parents(path, &mut edits, &mut change.told)?;
    place.saw(&mut edits);
    let groups: Vec<NodePath> = match (&current, effect) {
        (Some(current), Effect::Replaced) => {
            current.all().into_iter().filter(|node| node.form == Form::Group).map(|node| node.path.clone()).collect()
        }
        _ => Vec::new(),
    };
    keep_true(shared, &mut edits, path, &groups, &change.told).await?;
    Ok(commit(shared, edits).await?.map(|_| (effect, dialect)))
}

/// Makes a commit. `None` where something that it depends on is no longer so.
pub(super) async fn commit(shared: &Shared, edits: Edits) -> Result<Option<Vec<Outcome>>, NodeError> {
    let changes = edits.stage(&*shared.store).await?;
    match shared.store.commit(changes).await {
        Ok(outcomes) => Ok(Some(outcomes)),
        Err(StoreError::PreconditionFailed { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Where what is there differs from a plan. Groups without a document of their own are taken to have any.
fn differences(plan: &Plan, current: &Branch) -> Result<Vec<meta::zom::Difference>, NodeError> {
    let mut current = current.clone();
    adopt(&mut current, &plan.top);
    let version = Version::of(current.dialect);
    let found = Zom { version, root: told(current, version, &mut Vec::new())? };
    Ok(Zom::differences(&plan.told()?, &found, MAX_VIOLATIONS))
}

/// Gives implicit groups the documents that are planned for them.
fn adopt(current: &mut Branch, planned: &Branch) {
    if current.is_implicit() && planned.form == Form::Group {
        current.document = planned.document.clone();
    }
    let (Some(members), Some(planned)) = (&mut current.members, &planned.members) else { return };
    for (name, member) in members {
        if let Some(planned) = planned.get(name) {
            adopt(member, planned);
        }
    }
}

impl Place {
    /// Looks around a path. Fails where no node can be there.
    pub(super) async fn find(
        shared: &Shared,
        path: &NodePath,
        dialect: Option<Dialect>,
        version: Version,
    ) -> Result<Self, NodeError> {
        let overlaps = |copied: &NodePath| copied.below(path).is_some() || path.below(copied).is_some();
        if shared.copied_to.lock().iter().any(overlaps) {
            return Err(ArrayError::Unsettled { path: path.clone() }.into());
        }
        let (around, seen) = around(shared, path).await?;
        let above = around.iter().skip(1);
        if let Some((array, _)) = above.clone().find(|(_, documents)| documents.has_array()) {
            return Err(NodeError::BelowArray { path: path.clone(), array: array.clone() });
        }
        let there = match shared.see(path, dialect).await {
            Ok(Some(Sight::Array(sighting))) => Some(sighting.array.model().dialect),
            Ok(Some(Sight::Group(sighting))) => Some(sighting.dialect),
            // What cannot be opened is there, and can be replaced.
            Ok(None) | Err(ArrayError::Document { .. } | ArrayError::Chain { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let nearest = around.iter().find_map(|(_, documents)| documents.dialects().first().copied());
        let dialect = dialect.or(there).or(nearest).unwrap_or(version.dialect());
        let mut place = Self { site: Site { dialect, root: None }, around, seen, new_root: None };
        if dialect == Dialect::Draft {
            place.find_root(shared, path).await?;
        }
        Ok(place)
    }

    /// Finds the hierarchy of the draft that the path is in, or makes one that begins there.
    async fn find_root(&mut self, shared: &Shared, path: &NodePath) -> Result<(), NodeError> {
        let Some((at, _)) = self.around.iter().find(|(_, documents)| documents.entry) else {
            let document = text(&draft_entry_point());
            let key = entry_key(path)?;
            let entry = draft::entry_point(&document).map_err(|source| wrong(&key, source))?;
            let root = Arc::new(DraftRoot { path: path.clone(), prefix: prefix(path)?, entry });
            self.new_root = Some(root.clone());
            self.site.root = Some(root);
            return Ok(());
        };
        let at = at.clone();
        let key = entry_key(&at)?;
        let Some(value) = shared.store.get(&key, None).await? else {
            return Err(ArrayError::Unsettled { path: path.clone() }.into());
        };
        let entry = draft::entry_point(&value.bytes().await?).map_err(|source| wrong(&key, source))?;
        let root = Arc::new(DraftRoot { prefix: prefix(&at)?, path: at, entry });
        let above = path.ancestors().filter(|above| above.below(&root.path).is_some());
        let mut arrays = Vec::new();
        for above in above {
            let keys = keys::documents(&above, Dialect::Draft, Form::Array, Some(&root))?;
            arrays.extend(keys.into_iter().map(|key| (above.clone(), key)));
        }
        let keys: Vec<Key> = arrays.iter().map(|(_, key)| key.clone()).collect();
        let snapshot = shared.store.snapshot(&keys).await?;
        for (array, key) in arrays {
            if snapshot.head(&key)?.is_some() {
                return Err(NodeError::BelowArray { path: path.clone(), array });
            }
            self.seen.push((key, None));
        }
        self.site.root = Some(root);
        Ok(())
    }

    /// What is there already.
    pub(super) async fn current(&self, shared: &Shared, path: &NodePath) -> Result<Option<Branch>, NodeError> {
        match walk(shared, path, Some(self.site.dialect), Depth::All, Mode::Same).await {
            Ok(walk) => {
                // The root of everything is always there, which is nothing to build on.
                let nothing = path.is_root()
                    && walk.top.is_implicit()
                    && walk.top.members.as_ref().is_none_or(BTreeMap::is_empty);
                Ok((!nothing).then_some(walk.top))
            }
            Err(NodeError::Array(ArrayError::NoSuchNode { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Fails where the path has documents of another dialect only.
    pub(super) fn check_dialects(&self, path: &NodePath) -> Result<(), NodeError> {
        let Some((_, documents)) = self.around.first() else { return Ok(()) };
        let there = documents.dialects();
        match there.first() {
            Some(&found) if !there.contains(&self.site.dialect) => {
                Err(NodeError::OtherDialect { path: path.clone(), found })
            }
            _ => Ok(()),
        }
    }

    /// Checks the last name of a path that is to be a new node; the root of a hierarchy has none.
    pub(super) fn check_name(&self, path: &NodePath) -> Result<(), NodeError> {
        match &self.site.root {
            Some(root) if root.path == *path => Ok(()),
            _ => check_name(self.site.dialect, path),
        }
    }

    /// Creates the groups above the path that are not there: from the first that is there on, in any dialect, but never the root of everything.
    pub(super) fn parents(&self, path: &NodePath, edits: &mut Edits, told: &mut Vec<Told>) -> Result<(), NodeError> {
        let dialect = self.site.dialect;
        if let Some(root) = &self.new_root {
            let key = entry_key(&root.path)?;
            edits.saw(&key, None);
            edits.set(key, text(&root.entry.document));
        }
        if dialect == Dialect::Draft {
            let root = self.site.root.as_ref();
            let inside =
                |node: &NodePath| root.is_some_and(|root| node.below(&root.path).is_some_and(|it| !it.is_empty()));
            return path.ancestors().filter(inside).try_for_each(|node| check_name(dialect, &node));
        }
        let missing = self.around.iter().skip(1);
        let missing = missing.take_while(|(path, documents)| !path.is_root() && documents.dialects().is_empty());
        for (path, _) in missing {
            check_name(dialect, path)?;
            let document = bare_group(dialect);
            if let Some(key) = keys::documents(path, dialect, Form::Group, None)?.into_iter().next() {
                edits.saw(&key, None);
                edits.set(key, text(&document));
            }
            told.push(Told { path: path.clone(), dialect, node: Some(document) });
        }
        Ok(())
    }

    pub(super) fn saw(&self, edits: &mut Edits) {
        for (key, version) in &self.seen {
            edits.saw(key, *version);
        }
    }
}

fn entry_key(path: &NodePath) -> Result<Key, NodeError> {
    key_below(&prefix(path)?, "zarr.json").ok_or_else(|| keys::too_long(Dialect::Draft, path))
}

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
    fn is_empty(&self) -> bool {
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
    fn fill(&mut self, current: &Branch, planned: &Branch) {
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
    fn replace(&mut self, current: &Branch, planned: &Branch) -> Result<(), NodeError> {
        let stays = match (current.form, planned.form) {
            (Form::Group, Form::Group) => true,
            (Form::Array, Form::Array) => has_same_chunks(current, planned)?,
            _ => false,
        };
        if !stays {
            self.gone.push(Branch { members: None, ..current.clone() });
            self.create(planned);
            return Ok(());
        }
        let mut document = planned.document.clone();
        if let Some(copies) = current.document.get(V3_MEMBER).filter(|_| current.dialect == Dialect::V3) {
            document.insert(V3_MEMBER.to_owned(), copies.clone());
        }
        if current.is_implicit() || document != current.document {
            self.put(current.own.clone(), &Branch { document, ..planned.clone() });
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
    pub(super) async fn apply(&mut self, shared: &Shared, edits: &mut Edits) -> Result<(), NodeError> {
        for node in &self.gone {
            let extent = keys::extent(&node.path, node.dialect, node.root.as_ref())?;
            let Some(keys) = keys::below(shared, &extent.prefixes).await? else {
                let changes = MAX_COMMIT_CHANGES as u64 + 1;
                return Err(NodeError::TooManyChanges { changes, limit: MAX_COMMIT_CHANGES });
            };
            for (key, version) in &node.own.0 {
                edits.saw(key, *version);
            }
            for key in
                keys.into_iter().chain(extent.keys.into_iter().filter(|key| !key.as_str().ends_with("zarr.json")))
            {
                edits.erase(key);
            }
            tell(&mut self.told, &node.path, node.dialect, None);
        }
        let gone: BTreeSet<NodePath> = self.gone.iter().map(|node| node.path.clone()).collect();
        let beside = beside(shared, &self.set).await?;
        for (before, node) in std::mem::take(&mut self.set) {
            if let Some(found) = in_the_way(&node, &before, &beside)
                && !is_at_or_below(&gone, &node.path)
            {
                return Err(NodeError::OtherDialect { path: node.path, found });
            }
            place_documents(edits, &node, &before, &beside);
            self.erase_twin(edits, &node, &before, &beside);
            let told = match node.dialect {
                Dialect::V3 => without_copies(node.document),
                _ => node.document,
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
fn is_at_or_below(gone: &BTreeSet<NodePath>, path: &NodePath) -> bool {
    gone.contains(path) || path.ancestors().any(|above| gone.contains(&above))
}

/// Tells of a node, where there can be consolidated metadata that has it.
fn tell(told: &mut Vec<Told>, path: &NodePath, dialect: Dialect, node: Option<Map<String, Value>>) {
    if dialect != Dialect::Draft {
        told.push(Told { path: path.clone(), dialect, node });
    }
}

fn without_copies(mut document: Map<String, Value>) -> Map<String, Value> {
    document.shift_remove(V3_MEMBER);
    document
}

/// Whether two arrays differ in attributes and names of dimensions at the most.
fn has_same_chunks(current: &Branch, planned: &Branch) -> Result<bool, NodeError> {
    let version = Version::of(current.dialect);
    let zom = |branch: &Branch| -> Result<Zom, NodeError> {
        Ok(Zom { version, root: told(branch.clone(), version, &mut Vec::new())? })
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
    let mut keys = Vec::new();
    for (_, node) in set {
        match node.dialect {
            Dialect::Draft => keys.extend(node.own.0.iter().map(|(key, _)| key.clone())),
            Dialect::V2 | Dialect::V3 => {
                let prefix = prefix(&node.path)?;
                keys.extend(NAMES.iter().filter_map(|name| key_below(&prefix, name)));
            }
        }
    }
    let snapshot = shared.store.snapshot(&keys).await?;
    let mut found = BTreeMap::new();
    for key in keys {
        if let Some(info) = snapshot.head(&key)? {
            found.insert(key, info.version);
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

/// Adds the documents of a node to a commit.
fn place_documents(edits: &mut Edits, node: &Branch, before: &Own, beside: &BTreeMap<Key, StoreVersion>) {
    let expected = |key: &Key| before.0.iter().find(|(known, _)| known == key).map(|(_, version)| *version);
    let (main, attributes) = match node.dialect {
        Dialect::V2 => split_v2(&node.document),
        Dialect::V3 | Dialect::Draft => (node.document.clone(), None),
    };
    let mut keys = node.own.0.iter().map(|(key, _)| key);
    if let Some(key) = keys.next() {
        edits.saw(key, expected(key).flatten());
        edits.set(key.clone(), text(&main));
    }
    if let Some(key) = keys.next() {
        // Attributes may have been left behind by a node that went.
        let there = beside.get(key).copied();
        edits.saw(key, expected(key).unwrap_or(there));
        match attributes {
            Some(attributes) => edits.set(key.clone(), text(&attributes)),
            None if there.is_some() => edits.erase(key.clone()),
            None => {}
        }
    }
}
