//! Walking over a hierarchy: which nodes there are, with their documents.
//!
//! The children of a group are found by listing what is directly below it, level by level, and never below an array. A prefix without a document is a group where there is a node below it,
//! of the dialect that is found first. When all is read, everything that was looked at is compared with one snapshot and everything that was listed is listed again, so
//! that the whole is as of one commit.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    iter::once,
    sync::Arc,
};

use meta::{
    Dialect, NodePath,
    documents::{draft, object, write::join_v2},
    limits::MAX_DOCUMENT,
    zom::MAX_NODES,
};
use serde_json::{Map, Value};
use store::{Key, Page, Prefix, Snapshot, Version};
use tokio::{sync::OwnedSemaphorePermit, task::spawn_blocking};
use xxhash_rust::xxh3::Xxh3;

use super::{Depth, NodeError, documents::node_document};
use crate::{
    ATTEMPTS, ArrayError,
    find::{DraftRoot, GroupSighting, Own, Sight, Sighting, key_below, prefix, wrong},
    shared::Shared,
};

/// How many children are looked at with one snapshot.
const BATCH: usize = 4096;

/// How many entries of listings are gone through for one answer.
const MAX_LISTED: usize = 20 * MAX_NODES;

/// How many times as much memory as its text a document takes, roughly.
const PARSED: u64 = 8;

/// Up to so many bytes of documents are read without a reservation of memory, and parsed where the request is.
const LIGHT: u64 = 64 << 10;

/// How many levels are told at a time. JSON nests twice as deep, which is as much as its readers take, and what nests takes of the stack.
pub(super) const MAX_LEVELS: u32 = 64;

/// The documents of v2 and v3.
pub(super) const NAMES: [&str; 4] = ["zarr.json", ".zarray", ".zgroup", ".zattrs"];

/// What is meant where a path answers in several dialects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The members of a group are nodes of its own dialect.
    Same,
    /// They are nodes of any, each in the dialect that is preferred.
    Each,
}

/// A node with those below it.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    pub(super) path: NodePath,
    pub(super) dialect: Dialect,
    pub(super) form: Form,
    /// Its node document as it is stored; of an implicit group, what one would say without attributes.
    pub(super) document: Map<String, Value>,
    /// Empty for an implicit group.
    pub(super) own: Own,
    /// The hierarchy of the draft that it is in.
    pub(super) root: Option<Arc<DraftRoot>>,
    /// `None` for arrays and for groups that were not looked into.
    pub(super) members: Option<BTreeMap<String, Branch>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Array,
    Group,
}

/// What a walk found.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) top: Branch,
    /// The children that are of another dialect.
    pub(super) other: Vec<(NodePath, Dialect)>,
    /// Held for as long as the documents are.
    pub(super) memory: Vec<OwnedSemaphorePermit>,
}

impl Branch {
    /// Whether it is a group only because there are nodes below it.
    pub(super) fn is_implicit(&self) -> bool {
        self.own.0.is_empty()
    }

    /// All nodes, each after the one that holds it.
    pub(super) fn all(&self) -> Vec<&Self> {
        let mut all = vec![self];
        let mut next = 0;
        while let Some(branch) = all.get(next).copied() {
            all.extend(branch.members.iter().flat_map(BTreeMap::values));
            next += 1;
        }
        all
    }
}

/// Walks over the node at a path, as of one commit.
pub(super) async fn walk(
    shared: &Shared,
    path: &NodePath,
    dialect: Option<Dialect>,
    depth: Depth,
    mode: Mode,
) -> Result<Walk, NodeError> {
    for _ in 0..ATTEMPTS {
        let mut walker = Walker::new(shared, depth, mode);
        walker.run(path, dialect).await?;
        if walker.is_true_still().await? {
            return walker.finish(path);
        }
    }
    Err(ArrayError::Unsettled { path: path.clone() }.into())
}

/// What a path and the groups above it have of documents, the path first, the root last.
pub(super) async fn around(
    shared: &Shared,
    path: &NodePath,
) -> Result<(Vec<(NodePath, Documents)>, Vec<(Key, Option<Version>)>), NodeError> {
    let mut walker = Walker::new(shared, Depth::Levels(0), Mode::Same);
    let paths: Vec<NodePath> = once(path.clone()).chain(path.ancestors()).collect();
    let documents = walker.documents(&paths).await?;
    Ok((paths.into_iter().zip(documents).collect(), walker.seen))
}

/// A node of which nothing is known but its documents' versions.
pub(super) fn unread(path: NodePath, dialect: Dialect, form: Form, own: Own) -> Branch {
    leaf(path, dialect, form, Map::new(), own)
}

/// The document of a group that says nothing.
pub(super) fn bare_group(dialect: Dialect) -> Map<String, Value> {
    let mut document = Map::new();
    match dialect {
        Dialect::V2 => drop(document.insert("zarr_format".to_owned(), 2.into())),
        Dialect::V3 => {
            document.insert("zarr_format".to_owned(), 3.into());
            document.insert("node_type".to_owned(), "group".into());
        }
        Dialect::Draft => {
            document.insert("extensions".to_owned(), Value::Array(Vec::new()));
            document.insert("attributes".to_owned(), Value::Object(Map::new()));
        }
    }
    document
}

struct Walker<'a> {
    shared: &'a Shared,
    depth: Depth,
    mode: Mode,
    items: Vec<Item>,
    other: Vec<(NodePath, Dialect)>,
    seen: Vec<(Key, Option<Version>)>,
    /// The dialects of the groups without documents that probes came through.
    probed: HashMap<Prefix, Dialect>,
    /// The prefixes that were listed, each with a hash of what was in it.
    listed: Vec<(Prefix, u128)>,
    entries: usize,
    bytes: u64,
    memory: Vec<OwnedSemaphorePermit>,
}

/// A node that was found, in the order of the walk.
struct Item {
    branch: Branch,
    parent: Option<usize>,
    level: u32,
    /// The names below it that are no nodes, since a hierarchy of the draft has its keys there.
    reserved: &'static [&'static str],
}

/// The names below a hierarchy's root that its keys have.
const RESERVED: &[&str] = &["meta", "data"];

/// What is directly below a prefix.
struct Listed {
    prefixes: Vec<String>,
    keys: Vec<String>,
}

/// What a path has of documents of v2 and v3, and of entry points.
#[derive(Default)]
pub(super) struct Documents {
    v3: Option<(Key, Version, Map<String, Value>)>,
    /// Whether there is the entry point of a hierarchy of the draft.
    pub(super) entry: bool,
    v2: Option<(Form, Own, Map<String, Value>)>,
}

impl<'a> Walker<'a> {
    fn new(shared: &'a Shared, depth: Depth, mode: Mode) -> Self {
        Self {
            shared,
            depth,
            mode,
            items: Vec::new(),
            other: Vec::new(),
            seen: Vec::new(),
            probed: HashMap::new(),
            listed: Vec::new(),
            entries: 0,
            bytes: 0,
            memory: Vec::new(),
        }
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
                self.items.push(Item { branch, parent: None, level: 0, reserved: &[] });
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
        self.seen.extend(documents.iter().flat_map(|documents| documents.versions().to_vec()));
        let reserved = match self.entry_point_at(path).await? {
            true => RESERVED,
            false => &[],
        };
        self.items.push(Item { branch, parent: None, level: 0, reserved });
        Ok(())
    }

    /// The node of v2 or v3 at a path, of which only the documents are looked at.
    async fn unopened(&mut self, path: &NodePath, dialect: Option<Dialect>) -> Result<Option<Branch>, NodeError> {
        let mut found = self.documents(std::slice::from_ref(path)).await?;
        let Some(documents) = found.first_mut() else { return Ok(None) };
        let has = documents.dialects();
        let preferred = has.into_iter().find(|has| dialect.is_none_or(|dialect| dialect == *has));
        Ok(preferred.and_then(|dialect| documents.branch(path, dialect)))
    }

    async fn entry_point_at(&mut self, path: &NodePath) -> Result<bool, NodeError> {
        let found = self.documents(std::slice::from_ref(path)).await?;
        Ok(found.first().is_some_and(|documents| documents.entry))
    }

    /// The dialect of the group that a path without documents is because there are nodes below it.
    async fn implied(&mut self, path: &NodePath, dialect: Option<Dialect>) -> Result<Option<Dialect>, NodeError> {
        let own = prefix(path)?;
        let ancestors: Vec<NodePath> = path.ancestors().collect();
        for (ancestor, documents) in ancestors.iter().zip(self.documents(&ancestors).await?) {
            let is_array =
                |document: &Map<String, Value>| document.get("node_type").is_some_and(|node_type| node_type == "array");
            let array = documents.v3.is_some_and(|(_, _, document)| is_array(&document))
                || documents.v2.is_some_and(|(form, ..)| form == Form::Array);
            let first = path.below(ancestor).and_then(|below| below.split('/').next());
            let reserved = documents.entry && first.is_some_and(|first| RESERVED.contains(&first));
            if array || reserved {
                return Ok(None);
            }
        }
        if dialect == Some(Dialect::Draft) {
            return Ok(None);
        }
        let reserved = if self.entry_point_at(path).await? { RESERVED } else { &[] };
        let found = self.probe(&own, dialect, reserved).await?;
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
    ) -> Result<Option<Dialect>, NodeError> {
        let top = prefix;
        if let Some(known) = self.probed.get(top).filter(|_| wanted.is_none()) {
            return Ok(Some(*known));
        }
        let mut open = vec![(prefix.clone(), reserved.to_vec())];
        while let Some((prefix, reserved)) = open.pop() {
            let names = self.list(&prefix).await?.prefixes;
            let names = names.iter().filter(|name| !reserved.contains(&name.as_str()));
            let paths: Vec<NodePath> =
                names.filter_map(|name| NodePath::parse(&format!("{}{name}", prefix.as_str())).ok()).collect();
            let mut deeper = Vec::new();
            for batch in paths.chunks(BATCH) {
                let mut best = None;
                for (path, documents) in batch.iter().zip(self.documents(batch).await?) {
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
        let Some(item) = self.items.get_mut(index) else { return Ok(()) };
        item.branch.members = Some(BTreeMap::new());
        let (path, dialect, level) = (item.branch.path.clone(), item.branch.dialect, item.level + 1);
        let (root, reserved) = (item.branch.root.clone(), item.reserved);
        match root {
            Some(root) => self.open_draft(index, &path, &root, level).await,
            None => {
                let names = self.list(&prefix(&path)?).await?.prefixes;
                let names = names.iter().filter(|name| !reserved.contains(&name.as_str()));
                let paths: Vec<NodePath> =
                    names.filter_map(|name| NodePath::parse(&format!("{}{name}", path.key_prefix())).ok()).collect();
                for batch in paths.chunks(BATCH) {
                    let found = self.documents(batch).await?;
                    for (path, documents) in batch.iter().zip(found) {
                        self.child(index, path, dialect, level, documents).await?;
                    }
                }
                Ok(())
            }
        }
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
            (None, _) => match self.probe(&prefix(path)?, None, reserved).await? {
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
                    self.seen.extend(sighting.documents.versions().to_vec());
                    Some(array_branch(path, &sighting))
                }
                Some(Sight::Group(sighting)) => {
                    self.seen.extend(sighting.documents.versions().to_vec());
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
        let listed = self.list(&children).await?;
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
            let values = self.read(batch).await?;
            read.extend(batch.iter().cloned().zip(values));
        }
        for (name, document) in found {
            let Ok(path) = NodePath::parse(&format!("{}{name}", path.key_prefix())) else { continue };
            let branch = match document {
                None => implicit(path, Dialect::Draft, Some(root.clone())),
                // What went since it was listed is noticed when all is compared.
                Some((form, key)) => match read.remove(&key).flatten() {
                    None => continue,
                    Some((version, document)) => Branch {
                        root: Some(root.clone()),
                        ..leaf(path, Dialect::Draft, form, parsed(&key, &document)?, Own(vec![(key, Some(version))]))
                    },
                },
            };
            self.push(branch, index, level, &[])?;
        }
        Ok(())
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
        self.items.push(Item { branch, parent: Some(parent), level, reserved });
        Ok(())
    }

    /// What each of some paths has of documents.
    async fn documents(&mut self, paths: &[NodePath]) -> Result<Vec<Documents>, NodeError> {
        let keys_of = |path: &NodePath| {
            let prefix = prefix(path).ok();
            NAMES.map(|name| prefix.as_ref().and_then(|prefix| key_below(prefix, name)))
        };
        let named: Vec<[Option<Key>; 4]> = paths.iter().map(keys_of).collect();
        let keys: Vec<Key> = named.iter().flatten().flatten().cloned().collect();
        let values = self.read(&keys).await?;
        let weight: usize = values.iter().flatten().map(|(_, document)| document.len()).sum();
        let mut values = keys.into_iter().zip(values).collect::<BTreeMap<_, _>>();
        let mut interpret = move || {
            let mut take = |key: &Option<Key>| {
                let key = key.as_ref()?;
                values.remove(key).flatten().map(|(version, document)| (key.clone(), version, document))
            };
            named.iter().map(|keys| Documents::interpret(keys, keys.each_ref().map(&mut take))).collect()
        };
        match weight as u64 {
            ..=LIGHT => interpret(),
            _ => spawn_blocking(interpret).await.map_err(|_| ArrayError::Stopped)?,
        }
    }

    /// The values of documents, with their versions.
    async fn read(&mut self, keys: &[Key]) -> Result<Vec<Option<(Version, bytes::Bytes)>>, NodeError> {
        let snapshot = self.shared.store.snapshot(keys).await?;
        let mut values = Vec::with_capacity(keys.len());
        let mut pending = 0_u64;
        for key in keys {
            let info = snapshot.head(key)?;
            self.seen.push((key.clone(), info.map(|info| info.version)));
            pending = pending.saturating_add(info.map_or(0, |info| info.size));
            if let Some(info) = info.filter(|info| info.size > MAX_DOCUMENT as u64) {
                let size = usize::try_from(info.size).unwrap_or(usize::MAX);
                return Err(wrong(key, meta::documents::DocumentError::TooLarge { size }).into());
            }
        }
        self.reserve(pending).await?;
        for key in keys {
            let value = match snapshot.head(key)? {
                None => None,
                Some(info) => read_one(&*snapshot, key).await?.map(|document| (info.version, document)),
            };
            values.push(value);
        }
        Ok(values)
    }

    /// Reserves memory for documents of so many bytes.
    async fn reserve(&mut self, bytes: u64) -> Result<(), NodeError> {
        let before = self.bytes;
        self.bytes = before.saturating_add(bytes);
        let budget = self.shared.options.plan_memory();
        if self.bytes <= LIGHT {
            return Ok(());
        }
        if self.bytes.saturating_mul(PARSED) > budget {
            return Err(ArrayError::OverBudget { budget }.into());
        }
        let reserved = if before <= LIGHT { 0 } else { before };
        self.memory.push(self.shared.admit((self.bytes - reserved).saturating_mul(PARSED)).await?);
        Ok(())
    }

    /// What is directly below a prefix.
    async fn list(&mut self, prefix: &Prefix) -> Result<Listed, NodeError> {
        let (listed, hash) = list(self.shared, prefix, MAX_LISTED.saturating_sub(self.entries)).await?;
        self.entries = self.entries.saturating_add(listed.prefixes.len()).saturating_add(listed.keys.len()) + 1;
        self.listed.push((prefix.clone(), hash));
        Ok(listed)
    }

    /// Whether everything is as it was looked at: first what was listed, then all documents in one snapshot. A document that has the same version as before had it all the
    /// time between, and so when the listings were the same.
    async fn is_true_still(&mut self) -> Result<bool, NodeError> {
        if self.listed.is_empty() {
            return Ok(true);
        }
        for (prefix, before) in &self.listed {
            let (_, now) = list(self.shared, prefix, MAX_LISTED).await?;
            if now != *before {
                return Ok(false);
            }
        }
        self.seen.sort_unstable();
        self.seen.dedup();
        let keys: Vec<Key> = self.seen.iter().map(|(key, _)| key.clone()).collect();
        let snapshot = self.shared.store.snapshot(&keys).await?;
        for (key, version) in &self.seen {
            if snapshot.head(key)?.map(|info| info.version) != *version {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn finish(mut self, path: &NodePath) -> Result<Walk, NodeError> {
        // Every node is after the one that holds it.
        while self.items.len() > 1 {
            let Some(Item { branch, parent, .. }) = self.items.pop() else { break };
            let holder = parent.and_then(|parent| self.items.get_mut(parent));
            if let (Some(holder), Some(name)) = (holder, branch.path.name().map(str::to_owned)) {
                holder.branch.members.get_or_insert_default().insert(name, branch);
            }
        }
        let top = self.items.pop().ok_or_else(|| ArrayError::NoSuchNode { path: path.clone() })?.branch;
        self.other.sort_unstable();
        Ok(Walk { top, other: self.other, memory: self.memory })
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

type Read = Option<(Key, Version, bytes::Bytes)>;

impl Documents {
    /// What there is of the documents of one path, in the order of [`NAMES`].
    fn interpret(keys: &[Option<Key>; 4], [zarr_json, zarray, zgroup, zattrs]: [Read; 4]) -> Result<Self, NodeError> {
        let mut documents = Self::default();
        if let Some((key, version, value)) = zarr_json {
            match draft::is_entry_point(&value) {
                true => documents.entry = true,
                false => documents.v3 = Some((key.clone(), version, parsed(&key, &value)?)),
            }
        }
        let main = zarray.map(|read| (Form::Array, read)).or_else(|| zgroup.map(|read| (Form::Group, read)));
        if let Some((form, (key, version, value))) = main {
            let attributes = match &zattrs {
                Some((key, _, value)) => parsed(key, value)?,
                None => Map::new(),
            };
            let [.., attributes_key] = keys;
            let zattrs = attributes_key.clone().map(|key| (key, zattrs.map(|(_, version, _)| version)));
            let own = Own(once((key.clone(), Some(version))).chain(zattrs).collect());
            documents.v2 = Some((form, own, join_v2(&parsed(&key, &value)?, &attributes)));
        }
        Ok(documents)
    }

    /// The node that it is in v2 or v3.
    fn branch(&mut self, path: &NodePath, dialect: Dialect) -> Option<Branch> {
        match dialect {
            Dialect::V3 => self.v3.take().map(|(key, version, document)| {
                let form = match document.get("node_type").and_then(Value::as_str) {
                    Some("array") => Form::Array,
                    _ => Form::Group,
                };
                leaf(path.clone(), Dialect::V3, form, document, Own(vec![(key, Some(version))]))
            }),
            Dialect::V2 => {
                self.v2.take().map(|(form, own, document)| leaf(path.clone(), Dialect::V2, form, document, own))
            }
            Dialect::Draft => None,
        }
    }

    /// In which dialects there is a node, the preferred one first.
    pub(super) fn dialects(&self) -> Vec<Dialect> {
        let has = [(Dialect::V3, self.v3.is_some()), (Dialect::V2, self.v2.is_some()), (Dialect::Draft, self.entry)];
        has.into_iter().filter(|(_, has)| *has).map(|(dialect, _)| dialect).collect()
    }

    pub(super) fn has_array(&self) -> bool {
        let is_array =
            |document: &Map<String, Value>| document.get("node_type").is_some_and(|node_type| node_type == "array");
        self.v3.as_ref().is_some_and(|(_, _, document)| is_array(document))
            || self.v2.as_ref().is_some_and(|(form, ..)| *form == Form::Array)
    }
}

fn array_branch(path: &NodePath, sighting: &Sighting) -> Branch {
    let model = sighting.array.model();
    let document = node_document(model);
    let branch = leaf(path.clone(), model.dialect, Form::Array, document, sighting.own.clone());
    Branch { root: sighting.root.clone().filter(|_| model.dialect == Dialect::Draft), ..branch }
}

fn group_branch(path: &NodePath, sighting: GroupSighting) -> Branch {
    let GroupSighting { model, dialect, own, root, .. } = sighting;
    let root = root.filter(|_| dialect == Dialect::Draft);
    match model {
        None => implicit(path.clone(), dialect, root),
        Some(model) => {
            let document = match dialect {
                Dialect::V2 => join_v2(&model.document, &model.attributes),
                Dialect::V3 | Dialect::Draft => model.document,
            };
            Branch { root, ..leaf(path.clone(), dialect, Form::Group, document, own) }
        }
    }
}

fn implicit(path: NodePath, dialect: Dialect, root: Option<Arc<DraftRoot>>) -> Branch {
    Branch { root, ..leaf(path, dialect, Form::Group, bare_group(dialect), Own::default()) }
}

fn leaf(path: NodePath, dialect: Dialect, form: Form, document: Map<String, Value>, own: Own) -> Branch {
    Branch { path, dialect, form, document, own, root: None, members: None }
}

fn parsed(key: &Key, document: &[u8]) -> Result<Map<String, Value>, NodeError> {
    object(document).map_err(|source| wrong(key, source).into())
}

async fn read_one(snapshot: &dyn Snapshot, key: &Key) -> Result<Option<bytes::Bytes>, NodeError> {
    match snapshot.get(key, None).await? {
        Some(value) => Ok(Some(value.bytes().await?)),
        None => Ok(None),
    }
}

/// What is directly below a prefix, with a hash of it. Fails where there are more than `most`.
async fn list(shared: &Shared, prefix: &Prefix, most: usize) -> Result<(Listed, u128), NodeError> {
    let mut listed = Listed { prefixes: Vec::new(), keys: Vec::new() };
    let mut names = BTreeSet::new();
    let mut page = Page::first(store::MAX_PAGE);
    loop {
        let found = shared.store.list_dir(prefix, page).await?;
        listed.prefixes.extend(found.prefixes.iter().map(|prefix| prefix.name().to_owned()));
        listed.keys.extend(found.keys.iter().map(|entry| entry.key.name().to_owned()));
        if listed.prefixes.len() + listed.keys.len() > most {
            return Err(NodeError::TooManyNodes { limit: MAX_NODES });
        }
        match found.cursor {
            Some(cursor) => page = Page::after(store::MAX_PAGE, cursor),
            None => break,
        }
    }
    let mut hash = Xxh3::new();
    names.extend(listed.prefixes.iter().map(|name| format!("{name}/")));
    names.extend(listed.keys.iter().cloned());
    for name in names {
        hash.update(name.as_bytes());
        hash.update(&[0]);
    }
    Ok((listed, hash.digest128()))
}
