//! The durable and the pending changes at an event of a run; pending changes are made but not yet covered by a sync.
//!
//! A completed sync covers everything recorded before it started: for a file, its bytes and size, but not the directory
//! entry that names it; for a directory, the creation, renaming and removal of its entries. A rename between
//! directories is one change, covered by a sync of either directory.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use bytes::Bytes;

use crate::crash_states::{
    classes::Class,
    trace::{Event, ROOT, TracePath},
    tree::Tree,
};

/// A file or directory, as an index into [`Image::nodes`].
pub(crate) type Node = usize;
/// The index of an event.
pub(crate) type EventIndex = usize;

/// The recorded directory itself.
pub(crate) const ROOT_NODE: Node = 0;

/// All files and directories that ever existed.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub(crate) nodes: Vec<Kind>,
    /// The directory changes not covered by a sync, in order.
    pub(crate) entries: Vec<EntryChange>,
    open: HashMap<i32, Node>,
    syncs: HashMap<u64, Sync>,
    /// The class whose syncs are ignored.
    ignored_class: Option<&'static Class>,
    /// The class whose bytes and sizes are durable without a sync.
    durable: Option<&'static Class>,
    /// The number of events so far.
    pub(crate) now: EventIndex,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    File(File),
    Dir(Dir),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct File {
    pub(crate) durable: Arc<Vec<u8>>,
    pub(crate) pending: Vec<DataChange>,
    /// The size, including pending changes.
    size: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Dir {
    /// The path relative to the recorded directory, including pending changes.
    path: String,
    pub(crate) durable: BTreeMap<String, Node>,
    /// The entries, including pending changes.
    now: BTreeMap<String, Node>,
}

/// A change of a file's bytes or size.
#[derive(Clone, Debug)]
pub(crate) struct DataChange {
    pub(crate) at: EventIndex,
    pub(crate) what: Data,
    /// True if it changed the size of the file.
    pub(crate) resizes: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Data {
    Write { offset: u64, data: Bytes },
    Zero { offset: u64, len: u64, grows: bool },
    Size(u64),
    Grow(u64),
}

/// A change to the entries of one or two directories.
#[derive(Clone, Debug)]
pub(crate) struct EntryChange {
    pub(crate) at: EventIndex,
    pub(crate) what: Entry,
}

#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Add { dir: Node, name: String, node: Node },
    Remove { dir: Node, name: String },
    Rename { from: (Node, String), to: (Node, String), node: Node },
}

#[derive(Clone, Debug)]
struct Sync {
    started: EventIndex,
    node: Node,
    path: String,
}

const O_CREAT: u64 = 0o100;
const O_TRUNC: u64 = 0o1000;
const O_TMPFILE: u64 = 0o20_000_000;
const FALLOC_KEEP_SIZE: i32 = 1;
const FALLOC_PUNCH_HOLE: i32 = 2;
const FALLOC_ZERO_RANGE: i32 = 16;

impl Image {
    /// A fully durable directory.
    pub(crate) fn of(tree: &Tree, ignored_class: Option<&'static Class>, durable: Option<&'static Class>) -> Self {
        let mut image = Self {
            nodes: vec![Kind::Dir(Dir::default())],
            entries: Vec::new(),
            open: HashMap::new(),
            syncs: HashMap::new(),
            ignored_class,
            durable,
            now: 0,
        };
        for (path, bytes) in &tree.0 {
            let kind = match bytes {
                None => Kind::Dir(Dir { path: path.clone(), ..Dir::default() }),
                Some(bytes) => {
                    Kind::File(File { durable: Arc::clone(bytes), pending: Vec::new(), size: bytes.len() as u64 })
                }
            };
            let (dir, name) = image.parent(&TracePath { dir: ROOT, path: path.clone() });
            let node = image.add_node(kind);
            let dir = image.dir_mut(dir);
            dir.durable.insert(name.clone(), node);
            dir.now.insert(name, node);
        }
        image
    }

    pub(crate) fn take(&mut self, event: &Event) {
        match event {
            Event::Open { fd, path_ref, flags } => self.open_file(*fd, path_ref, *flags),
            Event::Close { fd } => {
                self.open.remove(fd);
            }
            Event::Dup { fd, new } => {
                let node = self.open[fd];
                self.open.insert(*new, node);
            }
            Event::Write { fd, offset, data } => {
                self.change(self.open[fd], Data::Write { offset: *offset, data: data.clone() });
            }
            Event::Truncate { fd, size } => self.change(self.open[fd], Data::Size(*size)),
            Event::Allocate { fd, mode, offset, len } => self.allocate(self.open[fd], *mode, *offset, *len),
            Event::Rename { from, to, flags } => {
                assert!(*flags <= 1, "a rename with the flags {flags}");
                self.rename(from, to);
            }
            Event::Link { from, to } => {
                let node = self.find(from).expect("a link of a missing file");
                self.add_entry(to, node);
            }
            Event::Unlink { path_ref } | Event::Rmdir { path_ref } => self.remove(path_ref),
            Event::Mkdir { path_ref } => {
                let path = self.path(path_ref);
                let node = self.add_node(Kind::Dir(Dir { path, ..Dir::default() }));
                self.add_entry(path_ref, node);
            }
            Event::SyncBegin { fd, number } => {
                let node = self.open[fd];
                let path = self.path_of(node);
                self.syncs.insert(*number, Sync { started: self.now, node, path });
            }
            Event::SyncEnd { number, done } => {
                let sync = self.syncs.remove(number).expect("a sync that begun");
                if *done && !self.ignored_class.is_some_and(|class| class.has(&sync.path)) {
                    self.cover(sync.node, sync.started);
                }
            }
            Event::SyncRange | Event::Note(_) => {}
        }
        self.now += 1;
    }

    fn open_file(&mut self, fd: i32, path_ref: &TracePath, flags: u64) {
        let node = if flags & O_TMPFILE != 0 {
            self.add_node(Kind::File(File::default()))
        } else {
            match self.find(path_ref) {
                Some(node) => {
                    if flags & O_TRUNC != 0 {
                        self.change(node, Data::Size(0));
                    }
                    node
                }
                None => {
                    assert!(flags & O_CREAT != 0, "{path_ref:?} is opened, and its making was not recorded");
                    let node = self.add_node(Kind::File(File::default()));
                    self.add_entry(path_ref, node);
                    node
                }
            }
        };
        self.open.insert(fd, node);
    }

    fn allocate(&mut self, node: Node, mode: i32, offset: u64, len: u64) {
        let grows = mode & FALLOC_KEEP_SIZE == 0;
        match mode & !FALLOC_KEEP_SIZE {
            0 if grows => self.change(node, Data::Grow(offset + len)),
            0 => {}
            FALLOC_PUNCH_HOLE | FALLOC_ZERO_RANGE => self.change(node, Data::Zero { offset, len, grows }),
            _ => panic!("fallocate with the mode {mode}"),
        }
    }

    fn change(&mut self, node: Node, what: Data) {
        let at = self.now;
        let durable = self.durable.is_some_and(|class| class.has(&self.path_of(node)));
        let Kind::File(file) = &mut self.nodes[node] else { panic!("bytes of a directory") };
        let size = what.size_after(file.size);
        let resizes = size != file.size;
        if matches!(what, Data::Size(_) | Data::Grow(_)) && !resizes {
            return;
        }
        file.size = size;
        if durable {
            return what.apply(Arc::make_mut(&mut file.durable));
        }
        file.pending.push(DataChange { at, what, resizes });
    }

    fn rename(&mut self, from: &TracePath, to: &TracePath) {
        let (from, to) = (self.parent(from), self.parent(to));
        let node = self.dir_mut(from.0).now.remove(&from.1).expect("a rename of a missing file");
        self.dir_mut(to.0).now.insert(to.1.clone(), node);
        let above = self.dir(to.0).path.clone();
        if let Kind::Dir(dir) = &mut self.nodes[node] {
            dir.path = join(&above, &to.1);
        }
        self.entries.push(EntryChange { at: self.now, what: Entry::Rename { from, to, node } });
    }

    fn remove(&mut self, path_ref: &TracePath) {
        let (dir, name) = self.parent(path_ref);
        self.dir_mut(dir).now.remove(&name).expect("a removal of a missing file");
        self.entries.push(EntryChange { at: self.now, what: Entry::Remove { dir, name } });
    }

    fn add_entry(&mut self, path_ref: &TracePath, node: Node) {
        let (dir, name) = self.parent(path_ref);
        self.dir_mut(dir).now.insert(name.clone(), node);
        self.entries.push(EntryChange { at: self.now, what: Entry::Add { dir, name, node } });
    }

    /// Makes durable what a sync of a node, started at `begun`, covers.
    fn cover(&mut self, node: Node, started: EventIndex) {
        if let Kind::File(file) = &mut self.nodes[node] {
            let pending = std::mem::take(&mut file.pending);
            let (covered, rest): (Vec<_>, Vec<_>) = pending.into_iter().partition(|change| change.at < started);
            file.pending = rest;
            if !covered.is_empty() {
                let bytes = Arc::make_mut(&mut file.durable);
                covered.iter().for_each(|change| change.what.apply(bytes));
            }
            return;
        }
        let limits = self.limits(BTreeMap::from([(node, started)]));
        let entries = std::mem::take(&mut self.entries);
        let (covered, rest): (Vec<_>, Vec<_>) = entries.into_iter().partition(|change| change.is_within(&limits));
        self.entries = rest;
        for change in covered {
            let dirs = change.what.dirs();
            let mut maps: BTreeMap<Node, BTreeMap<String, Node>> =
                dirs.iter().map(|dir| (*dir, std::mem::take(&mut self.dir_mut(*dir).durable))).collect();
            change.what.apply(&mut maps);
            for (dir, map) in maps {
                self.dir_mut(dir).durable = map;
            }
        }
    }

    /// Extends the limits to dependent directories: a change of two directories implies all earlier changes of both.
    pub(crate) fn limits(&self, mut limits: BTreeMap<Node, EventIndex>) -> BTreeMap<Node, EventIndex> {
        loop {
            let before = limits.clone();
            for change in self.entries.iter().filter(|change| change.is_within(&before)) {
                for dir in change.what.dirs() {
                    let limit = limits.entry(dir).or_default();
                    *limit = (*limit).max(change.at + 1);
                }
            }
            if limits == before {
                return limits;
            }
        }
    }

    /// The files and directories that can exist in some state.
    pub(crate) fn reachable(&self) -> BTreeSet<Node> {
        let mut found = BTreeSet::from([ROOT_NODE]);
        for kind in &self.nodes {
            if let Kind::Dir(dir) = kind {
                found.extend(dir.durable.values());
            }
        }
        found.extend(self.entries.iter().filter_map(|change| match change.what {
            Entry::Add { node, .. } => Some(node),
            Entry::Remove { .. } | Entry::Rename { .. } => None,
        }));
        found
    }

    fn add_node(&mut self, kind: Kind) -> Node {
        self.nodes.push(kind);
        self.nodes.len() - 1
    }

    pub(crate) fn dir(&self, node: Node) -> &Dir {
        match &self.nodes[node] {
            Kind::Dir(dir) => dir,
            Kind::File(_) => panic!("a file where a directory should be"),
        }
    }

    fn dir_mut(&mut self, node: Node) -> &mut Dir {
        match &mut self.nodes[node] {
            Kind::Dir(dir) => dir,
            Kind::File(_) => panic!("a file where a directory should be"),
        }
    }

    /// The parent directory of a path, and the last component.
    fn parent(&self, path_ref: &TracePath) -> (Node, String) {
        let mut dir = if path_ref.dir == ROOT { ROOT_NODE } else { self.open[&path_ref.dir] };
        let mut names = path_ref.path.split('/').filter(|name| !matches!(*name, "" | ".")).peekable();
        while let Some(name) = names.next() {
            assert_ne!(name, "..", "{path_ref:?}");
            if names.peek().is_none() {
                return (dir, name.to_owned());
            }
            dir = self.dir(dir).now[name];
        }
        (dir, String::new())
    }

    fn find(&self, path_ref: &TracePath) -> Option<Node> {
        let (dir, name) = self.parent(path_ref);
        if name.is_empty() { Some(dir) } else { self.dir(dir).now.get(&name).copied() }
    }

    fn path(&self, path_ref: &TracePath) -> String {
        let (dir, name) = self.parent(path_ref);
        join(&self.dir(dir).path, &name)
    }

    /// The path of an open file.
    pub(crate) fn path_of_open(&self, fd: i32) -> String {
        self.path_of(self.open[&fd])
    }

    /// The current path of a node; empty if it has none.
    pub(crate) fn path_of(&self, node: Node) -> String {
        if let Kind::Dir(dir) = &self.nodes[node] {
            return dir.path.clone();
        }
        let dirs = self.nodes.iter().filter_map(|kind| match kind {
            Kind::Dir(dir) => Some(dir),
            Kind::File(_) => None,
        });
        let mut names = dirs.flat_map(|dir| dir.now.iter().map(move |(name, found)| (dir, name, *found)));
        names.find(|(_, _, found)| *found == node).map(|(dir, name, _)| join(&dir.path, name)).unwrap_or_default()
    }
}

impl Data {
    fn size_after(&self, size: u64) -> u64 {
        match self {
            Self::Write { offset, data } => size.max(offset + data.len() as u64),
            Self::Zero { offset, len, grows: true } => size.max(offset + len),
            Self::Zero { .. } => size,
            Self::Size(size) => *size,
            Self::Grow(to) => size.max(*to),
        }
    }

    fn apply(&self, bytes: &mut Vec<u8>) {
        bytes.resize(self.size_after(bytes.len() as u64) as usize, 0);
        match self {
            Self::Write { offset, data } => bytes[*offset as usize..][..data.len()].copy_from_slice(data),
            Self::Zero { offset, len, .. } => {
                let end = bytes.len().min((offset + len) as usize);
                bytes[(*offset as usize).min(end)..end].fill(0);
            }
            Self::Size(_) | Self::Grow(_) => {}
        }
    }
}

impl EntryChange {
    pub(crate) fn is_within(&self, limits: &BTreeMap<Node, EventIndex>) -> bool {
        self.what.dirs().iter().any(|dir| limits.get(dir).is_some_and(|limit| self.at < *limit))
    }
}

impl Entry {
    /// The directories that the change affects.
    pub(crate) fn dirs(&self) -> Vec<Node> {
        match self {
            Self::Add { dir, .. } | Self::Remove { dir, .. } => vec![*dir],
            Self::Rename { from, to, .. } if from.0 == to.0 => vec![from.0],
            Self::Rename { from, to, .. } => vec![from.0, to.0],
        }
    }

    /// Applies the change to the entries of its directories. Renaming a missing entry has no effect.
    pub(crate) fn apply(&self, dirs: &mut BTreeMap<Node, BTreeMap<String, Node>>) {
        match self {
            Self::Add { dir, name, node } => {
                dirs.entry(*dir).or_default().insert(name.clone(), *node);
            }
            Self::Remove { dir, name } => {
                dirs.entry(*dir).or_default().remove(name);
            }
            Self::Rename { from, to, node } => {
                let source = dirs.entry(from.0).or_default();
                if source.get(&from.1) == Some(node) {
                    source.remove(&from.1);
                    dirs.entry(to.0).or_default().insert(to.1.clone(), *node);
                }
            }
        }
    }
}

fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") }
}
