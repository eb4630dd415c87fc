//! The walker, which visits the nodes of a subtree.

use std::{
    collections::{BTreeMap, HashMap},
    iter::once,
    sync::Arc,
};

use tokio::time::Instant;
use zarrd_executor::{Cost, Work};
use zarrd_meta::{
    Dialect, NodePath,
    documents::{draft, write::StoredNode},
    relation::DialectRelation,
    zom::{MAX_NODES, Members},
};
use zarrd_operations::Depth;
use zarrd_store::{Key, MAX_READ_TIME, Prefix, ReadError, Scanned, Version};

use super::{
    documents::Check,
    mode::{Below, DialectMode, FailedMounts, MAX_LEVELS, Top, WalkOptions, Window},
    scan::Purpose,
    snapshot_reader::SnapshotReader,
    unavailable::LeftOut,
};
use crate::{
    context::Context,
    error::ArrayError,
    memory::claim::Permit,
    metadata::{
        error::{NodeError, too_many_nodes},
        keys::NAMES,
        tree::{NodeKind, NodeTree, implicit},
    },
    node::{
        documents::Documents,
        keys::{join_key, node_prefix},
        resolved::DraftHierarchy,
    },
    retry::MAX_ATTEMPTS,
};

/// The number of children that are looked up in one snapshot.
pub(crate) const BATCH: usize = 1024;

/// The number of groups that are visited before the task yields to others, since scans may have read all of them
/// already, so that nothing is awaited.
const GROUPS_AT_ONCE: usize = 64;

/// The result of a walk.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) top: NodeTree,
    /// The children that are nodes of another dialect.
    pub(crate) other: Vec<(NodePath, Dialect)>,
    /// The relation of the documents that v2 and v3 have at the path of the topmost node; `None` if one of them has none.
    pub(crate) relation: Option<DialectRelation>,
    /// The keys and prefixes directly below the topmost group that belong to no node, if a page with them was walked.
    pub(crate) files: Option<Vec<Scanned>>,
    /// The mounts whose members are unknown, since their stores have no listings.
    pub(crate) unlisted: Vec<NodePath>,
    /// The memory of the documents.
    pub(crate) memory: Vec<Permit>,
}

/// Walks the node at a path, as of one commit.
pub(crate) async fn walk(
    context: &Context,
    path: &NodePath,
    dialect: Option<Dialect>,
    options: WalkOptions,
) -> Result<Walk, NodeError> {
    Walker::settled(context, path, dialect, options, None).await?.finish(path).await
}

/// The documents at a path and in the groups above it, the path first, the root last.
pub(crate) async fn ancestors(
    context: &Context,
    path: &NodePath,
) -> Result<(Vec<(NodePath, Documents)>, Vec<(Key, Option<Version>)>), NodeError> {
    let mut reader = SnapshotReader::new(context, path);
    let paths: Vec<NodePath> = once(path.clone()).chain(path.ancestors()).collect();
    let documents = reader.documents(&paths, Check::Model).await?;
    Ok((paths.into_iter().zip(documents).collect(), reader.versions_read))
}

/// The versions of the documents of v2 and v3 at a path, and of the entry point of the draft; `None` for those that do
/// not exist.
pub(crate) async fn versions_at(context: &Context, path: &NodePath) -> Result<Vec<(Key, Option<Version>)>, NodeError> {
    let prefix = node_prefix(path)?;
    let keys: Vec<Key> = NAMES.iter().filter_map(|name| join_key(&prefix, name)).collect();
    let snapshot = context.store.snapshot(&keys).await?;
    let mut versions = Vec::with_capacity(keys.len());
    for key in keys {
        let version = snapshot.meta(&key).await?.map(|info| info.version);
        versions.push((key, version));
    }
    Ok(versions)
}

pub(crate) struct Walker<'a> {
    pub(super) context: &'a Context,
    pub(super) reader: SnapshotReader<'a>,
    depth: Depth,
    pub(super) mode: DialectMode,
    pub(super) top: Top,
    pub(super) below: Below,
    /// The page of the topmost group's members to visit, if not all.
    pub(super) window: Option<Window>,
    pub(super) items: Vec<WalkItem>,
    pub(super) other: Vec<(NodePath, Dialect)>,
    /// The relation of the documents that v2 and v3 have at the path of the topmost node.
    pub(super) relation: Option<DialectRelation>,
    /// The dialects of implicit groups that probes have visited.
    pub(super) probed: HashMap<Prefix, Dialect>,
    /// The mounts that a walk passes over, since their stores have no listings and no document names their nodes.
    pub(super) unlisted: Vec<NodePath>,
    /// The documents of the last node: most groups of a large tree have the same, and share them.
    last: Arc<StoredNode>,
}

/// A visited node, in the order of the walk.
pub(crate) struct WalkItem {
    pub(super) branch: NodeTree,
    /// Its members, once everything below them is visited.
    members: Vec<(String, NodeTree)>,
    parent: Option<usize>,
    pub(super) level: u32,
    /// The names below it that are no nodes, since the keys of a draft hierarchy begin with them.
    pub(super) reserved: &'static [&'static str],
}

/// The names below a draft hierarchy's root that its keys begin with.
pub(crate) const RESERVED: &[&str] = &["meta", "data"];

impl<'a> Walker<'a> {
    /// Walks the node at a path until the whole walk is of one commit; with a window, only the members in it.
    pub(crate) async fn settled(
        context: &'a Context,
        path: &NodePath,
        dialect: Option<Dialect>,
        options: WalkOptions,
        window: Option<&Window>,
    ) -> Result<Self, NodeError> {
        let begun = Instant::now();
        let leaves_out = path.is_root() && options.failed_mounts == FailedMounts::Broken;
        let mut left_out = if leaves_out { LeftOut::of(&context.unavailable) } else { LeftOut::default() };
        let (mut attempts, mut expected) = (0, 0);
        while attempts < MAX_ATTEMPTS {
            let mut walker = Self::begin(context, path, options).await?;
            walker.window = window.cloned();
            walker.reader.expected = expected;
            if leaves_out {
                walker.reader.leave_out_failed_mounts(left_out.clone());
            }
            let walked = match walker.run(path, dialect).await {
                Ok(()) => walker.reader.validate().await,
                Err(error) => Err(error),
            };
            match walked {
                Ok(true) => return Ok(walker),
                Ok(false) => attempts += 1,
                Err(error) if leaves_out && left_out.add(&error, &context.unavailable) => {}
                // Another program changed a document while it was read.
                Err(error) if error.is_changed() => {
                    attempts += 1;
                    if attempts == MAX_ATTEMPTS || begun.elapsed() >= MAX_READ_TIME {
                        return Err(error);
                    }
                }
                // The walk releases its memory and waits for more at once; as it doubles each time, that ends.
                Err(error) => expected = walker.reader.better_expectation(&error).ok_or(error)?,
            }
        }
        Err(ArrayError::TooManyConflicts { path: path.clone() }.into())
    }

    async fn begin(context: &'a Context, path: &NodePath, options: WalkOptions) -> Result<Self, NodeError> {
        let WalkOptions { depth, mode, top, below, failed_mounts: _, caching } = options;
        let mut reader = SnapshotReader::begin(context, path).await?;
        reader.caching = caching;
        Ok(Self {
            context,
            reader,
            depth,
            mode,
            top,
            below,
            window: None,
            items: Vec::new(),
            other: Vec::new(),
            relation: None,
            probed: HashMap::new(),
            unlisted: Vec::new(),
            last: Arc::default(),
        })
    }

    async fn run(&mut self, path: &NodePath, dialect: Option<Dialect>) -> Result<(), NodeError> {
        self.top(path, dialect).await?;
        let mut level = 0..self.items.len();
        while !level.is_empty() {
            self.find_copies(level.clone()).await?;
            self.read_ahead(level.clone()).await?;
            for index in level.clone() {
                if self.is_open(index) {
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

    /// True if a node is a group whose members are visited.
    pub(super) fn is_open(&self, index: usize) -> bool {
        let is_open = |item: &WalkItem| {
            item.branch.kind == NodeKind::Group && item.branch.broken.is_none() && reaches(self.depth, item.level)
        };
        self.items.get(index).is_some_and(is_open)
    }

    /// Visits the members of a group.
    async fn open(&mut self, index: usize) -> Result<(), NodeError> {
        if let Some(window) = self.window.take_if(|_| index == 0) {
            return self.open_window(window).await;
        }
        let Some(item) = self.items.get_mut(index) else { return Ok(()) };
        if self.unlisted.contains(&item.branch.path) {
            return Ok(());
        }
        item.branch.members = Some(Members::new());
        let (path, dialect, at) = (item.branch.path.clone(), item.branch.dialect, item.level);
        let level = at + 1;
        let (root, reserved) = (item.branch.root.clone(), item.reserved);
        match root {
            Some(root) => self.open_draft(index, &path, &root, level).await,
            None => {
                let prefix = node_prefix(&path)?;
                self.reader.check_children(&prefix).await?;
                let names = self.reader.list(&prefix, self.purpose_at(at)).await?.prefixes;
                let paths = paths(&path.key_prefix(), &names, reserved);
                drop(names);
                if paths.len() > self.items.len() {
                    // A vector that doubles would have room for more.
                    self.items.reserve_exact(paths.len());
                }
                self.children(index, &paths, dialect, level).await
            }
        }
    }

    /// Reads the documents of paths directly below a group of v2 or v3.
    pub(crate) async fn children(
        &mut self,
        parent: usize,
        paths: &[NodePath],
        wanted: Dialect,
        level: u32,
    ) -> Result<(), NodeError> {
        for batch in paths.chunks(BATCH) {
            let found = self.reader.documents(batch, Check::Model).await?;
            for (path, documents) in batch.iter().zip(found) {
                self.child(parent, path, wanted, level, documents).await?;
            }
        }
        Ok(())
    }

    /// Visits a path directly below a group of v2 or v3.
    async fn child(
        &mut self,
        parent: usize,
        path: &NodePath,
        wanted: Dialect,
        level: u32,
        mut documents: Documents,
    ) -> Result<(), NodeError> {
        if let Some(unavailable) = self.reader.left_out.node(path) {
            return self.push(unavailable, parent, level, &[]);
        }
        if self.reader.is_unnamed_mount(path).await? {
            self.unlisted.push(path.clone());
        }
        let reserved: &'static [&'static str] = if documents.has_entry() { RESERVED } else { &[] };
        let has = documents.dialects();
        let dialect = match self.mode {
            DialectMode::Same if has.contains(&wanted) => Some(wanted),
            DialectMode::Same | DialectMode::Each => documents.readable().next().or(has.first().copied()),
        };
        let Some(dialect) = dialect else {
            let implied = self.probe(&node_prefix(path)?, None, reserved, self.purpose_at(level)).await?;
            return match implied {
                Some(dialect) if self.is_other(dialect, wanted) => self.push_other(path, dialect),
                Some(dialect) => self.push(implicit(path.clone(), dialect, None), parent, level, reserved),
                None => Ok(()),
            };
        };
        let stored = documents.branch(path, dialect);
        // The dialect of a broken node is uncertain.
        if self.is_other(dialect, wanted) && stored.as_ref().is_none_or(|stored| stored.broken.is_none()) {
            return self.push_other(path, dialect);
        }
        let branch = match (stored, dialect) {
            (None, Dialect::Draft) => self.draft_root(path).await?,
            (stored, _) => stored,
        };
        match branch {
            Some(branch) => self.push(branch, parent, level, reserved),
            None => Ok(()),
        }
    }

    fn is_other(&self, dialect: Dialect, wanted: Dialect) -> bool {
        self.mode == DialectMode::Same && dialect != wanted
    }

    fn push_other(&mut self, path: &NodePath, dialect: Dialect) -> Result<(), NodeError> {
        self.check_count()?;
        self.other.push((path.clone(), dialect));
        Ok(())
    }

    /// Visits the members of a draft group.
    async fn open_draft(
        &mut self,
        index: usize,
        path: &NodePath,
        root: &Arc<DraftHierarchy>,
        level: u32,
    ) -> Result<(), NodeError> {
        let below = path.relative_to(&root.path).unwrap_or_default();
        let children = format!("{}{}", root.prefix.as_str(), draft::children_prefix(below));
        let Ok(children) = Prefix::parse(&children) else { return Ok(()) };
        self.reader.check_children(&children).await?;
        let listed = self.reader.list(&children, self.purpose_at(level.saturating_sub(1))).await?;
        let suffix = &root.entry_point.metadata_key_suffix;
        let mut found: BTreeMap<String, Option<(NodeKind, Key)>> =
            listed.prefixes.into_iter().map(|name| (name, None)).collect();
        let documents = listed.keys.iter().filter_map(|name| {
            let stem = name.strip_suffix(suffix.as_str())?;
            let array = stem.strip_suffix(".array").map(|stem| (stem, NodeKind::Array));
            let (stem, kind) = array.or_else(|| stem.strip_suffix(".group").map(|stem| (stem, NodeKind::Group)))?;
            Some((stem, kind, children.join(name).ok()?))
        });
        for (stem, kind, key) in documents {
            let entry = found.entry(stem.to_owned()).or_default();
            // An array precedes a group of the same path.
            if !matches!(entry, Some((NodeKind::Array, _))) {
                *entry = Some((kind, key));
            }
        }
        let keys: Vec<Key> = found.values().flatten().map(|(_, key)| key.clone()).collect();
        let mut read = BTreeMap::new();
        for batch in keys.chunks(4 * BATCH) {
            let values = self.reader.read(batch).await?;
            read.extend(batch.iter().cloned().zip(values));
        }
        let mut stored = Vec::new();
        for (name, document) in found {
            let Ok(path) = NodePath::parse(&format!("{}{name}", path.key_prefix())) else { continue };
            match document {
                None => self.push(implicit(path, Dialect::Draft, Some(root.clone())), index, level, &[])?,
                // If it was erased after the listing, the validation will detect that.
                Some((kind, key)) => {
                    stored.extend(read.remove(&key).flatten().map(|value| (path, kind, key, value)));
                }
            }
        }
        for branch in self.reader.draft_branches(root, stored).await? {
            self.push(branch, index, level, &[])?;
        }
        Ok(())
    }

    /// The purpose of listing a group at this level below the topmost node.
    pub(crate) fn purpose_at(&self, level: u32) -> Purpose {
        match self.depth {
            _ if !reaches(self.depth, level) => Purpose::FirstNode,
            Depth::Levels(levels) => Purpose::Members(levels.min(MAX_LEVELS).saturating_sub(level)),
            Depth::All => Purpose::Members(MAX_LEVELS),
        }
    }

    pub(crate) fn push(
        &mut self,
        mut branch: NodeTree,
        parent: usize,
        level: u32,
        reserved: &'static [&'static str],
    ) -> Result<(), NodeError> {
        self.check_count()?;
        match branch.stored.is_identical(&self.last) {
            true => branch.stored = self.last.clone(),
            false => self.last = branch.stored.clone(),
        }
        self.items.push(WalkItem::new(branch, Some(parent), level, reserved));
        Ok(())
    }

    /// Checks that another node may be visited.
    fn check_count(&self) -> Result<(), NodeError> {
        match self.items.len().saturating_add(self.other.len()) {
            ..MAX_NODES => Ok(()),
            _ => Err(too_many_nodes()),
        }
    }

    pub(crate) async fn finish(self, path: &NodePath) -> Result<Walk, NodeError> {
        let Self { context, mut reader, items, mut other, relation, window, unlisted, .. } = self;
        let files = window.and_then(|window| window.files);
        let memory = std::mem::take(&mut reader.memory);
        drop(reader);
        let top = context.run(Cost::of(Work::Nodes, items.len() as u64), || assemble(items)).await?;
        other.sort_unstable();
        let top = top.ok_or_else(|| ArrayError::NoSuchNode { path: path.clone() })?;
        Ok(Walk { top, other, relation, files, unlisted, memory })
    }
}

/// The paths of the children with these names below a prefix, without those that are no nodes.
pub(crate) fn paths(prefix: &str, names: &[String], reserved: &[&str]) -> Vec<NodePath> {
    let names = names.iter().filter(|name| !reserved.contains(&name.as_str()));
    names.filter_map(|name| NodePath::parse(&format!("{prefix}{name}")).ok()).collect()
}

/// Moves all nodes into their parents. Every node comes after its parent.
fn assemble(mut items: Vec<WalkItem>) -> Option<NodeTree> {
    while items.len() > 1 {
        let Some(item) = items.pop() else { break };
        if items.len() < items.capacity() / 2 {
            items.shrink_to_fit();
        }
        let holder = item.parent.and_then(|parent| items.get_mut(parent));
        let branch = item.finish();
        if let (Some(holder), Some(name)) = (holder, branch.path.name().map(str::to_owned)) {
            holder.members.push((name, branch));
        }
    }
    items.pop().map(WalkItem::finish)
}

impl WalkItem {
    pub(crate) fn new(branch: NodeTree, parent: Option<usize>, level: u32, reserved: &'static [&'static str]) -> Self {
        Self { branch, members: Vec::new(), parent, level, reserved }
    }

    /// The node with its members.
    fn finish(mut self) -> NodeTree {
        if !self.members.is_empty() {
            self.branch.members = Some(self.members.into_iter().collect());
        }
        self.branch
    }
}

/// True if the members of a group at this level below the topmost node are described.
fn reaches(depth: Depth, level: u32) -> bool {
    match depth {
        Depth::Levels(levels) => level < levels.min(MAX_LEVELS),
        Depth::All => level < MAX_LEVELS,
    }
}
