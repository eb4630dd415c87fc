//! Walking over a hierarchy: which nodes there are, with their documents.
//!
//! The children of a group are found by listing what is directly below it, level by level, and never below an array. A prefix without a document is a group where there is a node below it,
//! of the dialect that is found first. The whole is as of one commit: where any was made meanwhile, everything that was looked at is compared with one snapshot and everything
//! that was listed is listed again.

mod branch;
mod look;
mod page;
mod scan;

use std::{
    collections::{BTreeMap, HashMap},
    iter::once,
    sync::Arc,
};

use bytes::Bytes;
use meta::{
    Dialect, NodePath,
    documents::{draft, write::StoredNode},
    zom::{MAX_NODES, Members},
};
use store::{Key, Prefix, Version};

pub(super) use self::{
    branch::{Branch, Form, bare_group, group_branch, unread},
    look::{Documents, NAMES},
    page::{Window, walk_page},
};
use self::{
    branch::{array_branch, implicit, leaf},
    look::{Listed, Look, parsed},
    scan::Purpose,
};
use super::{Depth, NodeError};
use crate::{
    ATTEMPTS, ArrayError,
    find::{DraftRoot, Own, Sight, prefix},
    share::Permit,
    shared::Shared,
};

/// So many nodes are put together where the request is.
const FEW: u64 = 1024;

/// How many children are looked at with one snapshot.
const BATCH: usize = 1024;

/// How many groups are opened before other requests have a turn on this worker: scans may have shown all that is in them, so that nothing is waited for.
const GROUPS_AT_ONCE: usize = 64;

/// How many levels are told at a time. JSON nests twice as deep, which is as much as its readers take, and what nests takes of the stack.
pub(super) const MAX_LEVELS: u32 = 64;

/// What is meant where a path answers in several dialects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The members of a group are nodes of its own dialect.
    Same,
    /// They are nodes of any, each in the dialect that is preferred.
    Each,
}

/// What a walk found.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) top: Branch,
    /// The children that are of another dialect.
    pub(super) other: Vec<(NodePath, Dialect)>,
    /// Held for as long as the documents are.
    pub(super) memory: Vec<Permit>,
}

/// Walks over the node at a path, as of one commit.
pub(super) async fn walk(
    shared: &Shared,
    path: &NodePath,
    dialect: Option<Dialect>,
    depth: Depth,
    mode: Mode,
) -> Result<Walk, NodeError> {
    Walker::settled(shared, path, dialect, (depth, mode), None).await?.finish(path).await
}

/// What a path and the groups above it have of documents, the path first, the root last.
pub(super) async fn around(
    shared: &Shared,
    path: &NodePath,
) -> Result<(Vec<(NodePath, Documents)>, Vec<(Key, Option<Version>)>), NodeError> {
    let mut look = Look::new(shared);
    let paths: Vec<NodePath> = once(path.clone()).chain(path.ancestors()).collect();
    let documents = look.documents(&paths).await?;
    Ok((paths.into_iter().zip(documents).collect(), look.seen))
}

struct Walker<'a> {
    shared: &'a Shared,
    look: Look<'a>,
    depth: Depth,
    mode: Mode,
    /// The part of the topmost group's members that is told, where not all are.
    window: Option<Window>,
    items: Vec<Item>,
    other: Vec<(NodePath, Dialect)>,
    /// The dialects of the groups without documents that probes came through.
    probed: HashMap<Prefix, Dialect>,
}

/// A node that was found, in the order of the walk.
struct Item {
    branch: Branch,
    /// Its members, once all that is below them is done.
    members: Vec<(String, Branch)>,
    parent: Option<usize>,
    level: u32,
    /// The names below it that are no nodes, since a hierarchy of the draft has its keys there.
    reserved: &'static [&'static str],
}

/// The names below a hierarchy's root that its keys have.
const RESERVED: &[&str] = &["meta", "data"];

impl<'a> Walker<'a> {
    /// Walks over the node at a path until all of it was as of one commit; with a window, over the topmost group's members that are in it.
    async fn settled(
        shared: &'a Shared,
        path: &NodePath,
        dialect: Option<Dialect>,
        (depth, mode): (Depth, Mode),
        window: Option<&Window>,
    ) -> Result<Self, NodeError> {
        let (mut attempts, mut expected) = (0, 0);
        while attempts < ATTEMPTS {
            let mut walker = Self::begin(shared, depth, mode).await?;
            walker.window = window.cloned();
            walker.look.expected = expected;
            if let Err(error) = walker.run(path, dialect).await {
                // It gives back what it has, and waits for more than that at once. As it doubles each time, that comes to its end.
                expected = walker.look.better_expectation(&error).ok_or(error)?;
                continue;
            }
            if walker.look.is_true_still().await? {
                return Ok(walker);
            }
            attempts += 1;
        }
        Err(ArrayError::Unsettled { path: path.clone() }.into())
    }

    async fn begin(shared: &'a Shared, depth: Depth, mode: Mode) -> Result<Self, NodeError> {
        let look = Look::begin(shared).await?;
        Ok(Self {
            shared,
            look,
            depth,
            mode,
            window: None,
            items: Vec::new(),
            other: Vec::new(),
            probed: HashMap::new(),
        })
    }

    async fn run(&mut self, path: &NodePath, dialect: Option<Dialect>) -> Result<(), NodeError> {
        self.top(path, dialect).await?;
        let mut level = 0..self.items.len();
        while !level.is_empty() {
            for index in level.clone() {
                if let Some(item) = self.items.get(index)
                    && item.branch.form == Form::Group
                    && self.depth.reaches(item.level)
                {
                    if index % GROUPS_AT_ONCE == 0 {
                        tokio::task::yield_now().await;
                    }
                    self.open(index).await?;
                }
            }
            level = level.end..self.items.len();
        }
        Ok(())
    }

    /// Finds the topmost node.
    async fn top(&mut self, path: &NodePath, dialect: Option<Dialect>) -> Result<(), NodeError> {
        let sight = match self.shared.see(path, dialect).await {
            // What an array is can be told without its codecs.
            Err(error @ ArrayError::Chain { .. }) => {
                let branch = self.unopened(path, dialect).await?.ok_or(error)?;
                self.items.push(Item::new(branch, None, 0, &[]));
                return Ok(());
            }
            sight => sight?,
        };
        let (documents, branch) = match sight {
            Some(Sight::Array(sighting)) => (Some(sighting.documents.clone()), array_branch(path, &sighting)),
            Some(Sight::Group(sighting)) => (Some(sighting.documents.clone()), group_branch(path, *sighting)),
            None => {
                let dialect = self.implied(path, dialect).await?;
                let none = ArrayError::NoSuchNode { path: path.clone() };
                (None, implicit(path.clone(), dialect.ok_or(none)?, None))
            }
        };
        self.look.seen.extend(documents.iter().flat_map(|documents| documents.versions().to_vec()));
        let reserved = match self.entry_point_at(path).await? {
            true => RESERVED,
            false => &[],
        };
        self.items.push(Item::new(branch, None, 0, reserved));
        Ok(())
    }

    /// The node of v2 or v3 at a path, of which only the documents are looked at.
    async fn unopened(&mut self, path: &NodePath, dialect: Option<Dialect>) -> Result<Option<Branch>, NodeError> {
        let mut found = self.look.documents(std::slice::from_ref(path)).await?;
        let Some(documents) = found.first_mut() else { return Ok(None) };
        let has = documents.dialects();
        let preferred = has.into_iter().find(|has| dialect.is_none_or(|dialect| dialect == *has));
        Ok(preferred.and_then(|dialect| documents.branch(path, dialect)))
    }

    async fn entry_point_at(&mut self, path: &NodePath) -> Result<bool, NodeError> {
        let found = self.look.documents(std::slice::from_ref(path)).await?;
        Ok(found.first().is_some_and(|documents| documents.entry))
    }

    /// The dialect of the group that a path without documents is because there are nodes below it.
    async fn implied(&mut self, path: &NodePath, dialect: Option<Dialect>) -> Result<Option<Dialect>, NodeError> {
        let own = prefix(path)?;
        let ancestors: Vec<NodePath> = path.ancestors().collect();
        for (ancestor, documents) in ancestors.iter().zip(self.look.documents(&ancestors).await?) {
            let first = path.below(ancestor).and_then(|below| below.split('/').next());
            let reserved = documents.entry && first.is_some_and(|first| RESERVED.contains(&first));
            if documents.has_array() || reserved {
                return Ok(None);
            }
        }
        if dialect == Some(Dialect::Draft) {
            return Ok(None);
        }
        let reserved = if self.entry_point_at(path).await? { RESERVED } else { &[] };
        let mut found = match self.window {
            Some(_) => self.probe_pages(&own, dialect, reserved).await?,
            None => None,
        };
        if found.is_none() {
            found = self.probe(&own, dialect, reserved, self.purpose_at(0)).await?;
        }
        Ok(match path.is_root() {
            // The root of everything is a group, whatever is below it.
            true => Some(found.or(dialect).unwrap_or(Dialect::V3)),
            false => found,
        })
    }

    /// The dialect of the first node that is found below a prefix; of `wanted` if only that is meant. Of the nodes directly below a prefix that which is preferred counts.
    async fn probe(
        &mut self,
        prefix: &Prefix,
        wanted: Option<Dialect>,
        reserved: &[&str],
        mut purpose: Purpose,
    ) -> Result<Option<Dialect>, NodeError> {
        let top = prefix;
        if let Some(known) = self.probed.get(top).filter(|_| wanted.is_none()) {
            return Ok(Some(*known));
        }
        let mut open = vec![(prefix.clone(), reserved.to_vec())];
        while let Some((prefix, reserved)) = open.pop() {
            let names = self.look.list(&prefix, std::mem::replace(&mut purpose, Purpose::FirstNode)).await?.prefixes;
            let paths = paths(prefix.as_str(), &names, &reserved);
            let mut deeper = Vec::new();
            for batch in paths.chunks(BATCH) {
                let mut best = None;
                for (path, documents) in batch.iter().zip(self.look.documents(batch).await?) {
                    let dialects = documents.dialects();
                    let found = dialects.iter().copied().filter(|found| wanted.is_none_or(|wanted| wanted == *found));
                    best = best.into_iter().chain(found).min();
                    if !documents.has_array()
                        && let Ok(below) = Prefix::parse(&path.key_prefix())
                    {
                        let reserved = if documents.entry { RESERVED.to_vec() } else { Vec::new() };
                        deeper.push((below, reserved));
                    }
                }
                if let Some(found) = best {
                    self.came_through(top, &prefix, found, wanted);
                    return Ok(best);
                }
            }
            open.extend(deeper.into_iter().rev());
        }
        Ok(None)
    }

    /// Whoever probes a prefix between `top` and the one with the first node comes to the same node.
    fn came_through(&mut self, top: &Prefix, last: &Prefix, found: Dialect, wanted: Option<Dialect>) {
        let below = last.as_str().strip_prefix(top.as_str()).filter(|_| wanted.is_none());
        let mut at = top.as_str().to_owned();
        for segment in below.into_iter().flat_map(|below| below.split_terminator('/')) {
            at.push_str(segment);
            at.push('/');
            if let Ok(prefix) = Prefix::parse(&at) {
                self.probed.insert(prefix, found);
            }
        }
    }

    /// Finds the members of a group.
    async fn open(&mut self, index: usize) -> Result<(), NodeError> {
        if let Some(window) = self.window.take_if(|_| index == 0) {
            return self.open_window(window).await;
        }
        let Some(item) = self.items.get_mut(index) else { return Ok(()) };
        item.branch.members = Some(Members::new());
        let (path, dialect, at) = (item.branch.path.clone(), item.branch.dialect, item.level);
        let level = at + 1;
        let (root, reserved) = (item.branch.root.clone(), item.reserved);
        match root {
            Some(root) => self.open_draft(index, &path, &root, level).await,
            None => {
                let names = self.look.list(&prefix(&path)?, self.purpose_at(at)).await?.prefixes;
                self.children(index, &paths(&path.key_prefix(), &names, reserved), dialect, level).await
            }
        }
    }

    /// Looks at paths directly below a group of v2 or v3.
    async fn children(
        &mut self,
        parent: usize,
        paths: &[NodePath],
        wanted: Dialect,
        level: u32,
    ) -> Result<(), NodeError> {
        for batch in paths.chunks(BATCH) {
            let found = self.look.documents(batch).await?;
            for (path, documents) in batch.iter().zip(found) {
                self.child(parent, path, wanted, level, documents).await?;
            }
        }
        Ok(())
    }

    /// Looks at a path directly below a group of v2 or v3.
    async fn child(
        &mut self,
        parent: usize,
        path: &NodePath,
        wanted: Dialect,
        level: u32,
        mut documents: Documents,
    ) -> Result<(), NodeError> {
        let reserved: &'static [&'static str] = if documents.entry { RESERVED } else { &[] };
        let has = documents.dialects();
        let dialect = match (has.first().copied(), self.mode) {
            (Some(_), Mode::Same) if has.contains(&wanted) => wanted,
            (Some(dialect), _) => dialect,
            (None, _) => match self.probe(&prefix(path)?, None, reserved, self.purpose_at(level)).await? {
                Some(dialect) => {
                    if self.mode == Mode::Same && dialect != wanted {
                        self.other.push((path.clone(), dialect));
                        return Ok(());
                    }
                    return self.push(implicit(path.clone(), dialect, None), parent, level, reserved);
                }
                None => return Ok(()),
            },
        };
        if self.mode == Mode::Same && dialect != wanted {
            self.other.push((path.clone(), dialect));
            return Ok(());
        }
        let branch = match dialect {
            Dialect::V3 | Dialect::V2 => documents.branch(path, dialect),
            Dialect::Draft => match self.shared.see(path, Some(Dialect::Draft)).await? {
                Some(Sight::Array(sighting)) => {
                    self.look.seen.extend(sighting.documents.versions().to_vec());
                    Some(array_branch(path, &sighting))
                }
                Some(Sight::Group(sighting)) => {
                    self.look.seen.extend(sighting.documents.versions().to_vec());
                    Some(group_branch(path, *sighting))
                }
                None => None,
            },
        };
        match branch {
            Some(branch) => self.push(branch, parent, level, reserved),
            None => Ok(()),
        }
    }

    /// Finds the members of a group of a draft hierarchy.
    async fn open_draft(
        &mut self,
        index: usize,
        path: &NodePath,
        root: &Arc<DraftRoot>,
        level: u32,
    ) -> Result<(), NodeError> {
        let below = path.below(&root.path).unwrap_or_default();
        let children = format!("{}{}", root.prefix.as_str(), draft::children_prefix(below));
        let Ok(children) = Prefix::parse(&children) else { return Ok(()) };
        let listed = self.look.list(&children, self.purpose_at(level.saturating_sub(1))).await?;
        let suffix = &root.entry.metadata_key_suffix;
        let mut found: BTreeMap<String, Option<(Form, Key)>> =
            listed.prefixes.into_iter().map(|name| (name, None)).collect();
        let documents = listed.keys.iter().filter_map(|name| {
            let stem = name.strip_suffix(suffix.as_str())?;
            let array = stem.strip_suffix(".array").map(|stem| (stem, Form::Array));
            let (stem, form) = array.or_else(|| stem.strip_suffix(".group").map(|stem| (stem, Form::Group)))?;
            Some((stem, form, children.join(name).ok()?))
        });
        for (stem, form, key) in documents {
            let entry = found.entry(stem.to_owned()).or_default();
            // An array comes before a group of the same path.
            if !matches!(entry, Some((Form::Array, _))) {
                *entry = Some((form, key));
            }
        }
        let keys: Vec<Key> = found.values().flatten().map(|(_, key)| key.clone()).collect();
        let mut read = BTreeMap::new();
        for batch in keys.chunks(4 * BATCH) {
            let values = self.look.read(batch).await?;
            read.extend(batch.iter().cloned().zip(values));
        }
        for (name, document) in found {
            let Ok(path) = NodePath::parse(&format!("{}{name}", path.key_prefix())) else { continue };
            let branch = match document {
                None => implicit(path, Dialect::Draft, Some(root.clone())),
                // What went since it was listed is noticed when all is compared.
                Some((form, key)) => match read.remove(&key).flatten() {
                    None => continue,
                    Some((version, document)) => draft_branch(path, root, form, (key, version, document))?,
                },
            };
            self.push(branch, index, level, &[])?;
        }
        Ok(())
    }

    /// The use that is made of the listing of a group at this level below the topmost node.
    fn purpose_at(&self, level: u32) -> Purpose {
        match self.depth {
            _ if !self.depth.reaches(level) => Purpose::FirstNode,
            Depth::Levels(levels) => Purpose::Members(levels.min(MAX_LEVELS).saturating_sub(level)),
            Depth::All => Purpose::Members(MAX_LEVELS),
        }
    }

    fn push(
        &mut self,
        branch: Branch,
        parent: usize,
        level: u32,
        reserved: &'static [&'static str],
    ) -> Result<(), NodeError> {
        if self.items.len() >= MAX_NODES {
            return Err(NodeError::TooManyNodes { limit: MAX_NODES });
        }
        self.items.push(Item::new(branch, Some(parent), level, reserved));
        Ok(())
    }

    async fn finish(self, path: &NodePath) -> Result<Walk, NodeError> {
        let Self { shared, look: Look { memory, .. }, items, mut other, .. } = self;
        let nodes = items.len() as u64;
        let top = match nodes {
            ..=FEW => assemble(items),
            // What is not a byte of a document is about as much work.
            _ => shared.on_documents(nodes.saturating_mul(64), || assemble(items)).await?,
        };
        other.sort_unstable();
        Ok(Walk { top: top.ok_or_else(|| ArrayError::NoSuchNode { path: path.clone() })?, other, memory })
    }
}

/// The paths of the children with these names below a prefix, but for those that are no nodes.
fn paths(prefix: &str, names: &[String], reserved: &[&str]) -> Vec<NodePath> {
    let names = names.iter().filter(|name| !reserved.contains(&name.as_str()));
    names.filter_map(|name| NodePath::parse(&format!("{prefix}{name}")).ok()).collect()
}

/// A node of a draft hierarchy, of which this is the document.
fn draft_branch(
    path: NodePath,
    root: &Arc<DraftRoot>,
    form: Form,
    (key, version, document): (Key, Version, Bytes),
) -> Result<Branch, NodeError> {
    let stored = StoredNode::whole(parsed(&key, document)?);
    let own = Own(vec![(key, Some(version))]);
    Ok(Branch { root: Some(root.clone()), ..leaf(path, Dialect::Draft, form, stored, own) })
}

/// Puts all nodes below those that hold them. Every node is after the one that holds it.
fn assemble(mut items: Vec<Item>) -> Option<Branch> {
    while items.len() > 1 {
        let Some(item) = items.pop() else { break };
        let holder = item.parent.and_then(|parent| items.get_mut(parent));
        let branch = item.finish();
        if let (Some(holder), Some(name)) = (holder, branch.path.name().map(str::to_owned)) {
            holder.members.push((name, branch));
        }
    }
    items.pop().map(Item::finish)
}

impl Item {
    fn new(branch: Branch, parent: Option<usize>, level: u32, reserved: &'static [&'static str]) -> Self {
        Self { branch, members: Vec::new(), parent, level, reserved }
    }

    /// The node with its members.
    fn finish(mut self) -> Branch {
        if !self.members.is_empty() {
            self.branch.members = Some(self.members.into_iter().collect());
        }
        self.branch
    }
}

impl Depth {
    /// Whether the members of a group at this level below the topmost node are told.
    fn reaches(self, level: u32) -> bool {
        match self {
            Self::Levels(levels) => level < levels.min(MAX_LEVELS),
            Self::All => level < MAX_LEVELS,
        }
    }
}
