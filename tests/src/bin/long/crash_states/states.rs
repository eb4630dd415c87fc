//! The possible crash states: everything durable, and some pending changes.
//!
//! Any of a file's pending writes may have reached the disk, completely or by sectors. Its sizes take effect in order,
//! and a size may take effect without the bytes, which then read as zeros. Directory changes take effect in order up to
//! some point, as journals guarantee. `Order::Any` applies any subset of them instead; no supported file system does
//! this, and the store does not promise to survive it.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use rand::{RngExt, SeedableRng, rngs::SmallRng, seq::IndexedRandom};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::crash_states::{
    image::{Data, EventIndex, File, Image, Kind, Node, ROOT_NODE},
    tree::Tree,
};

/// The order in which directory changes reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// In order within each directory; the store relies on this.
    Ordered,
    Any,
}

/// The pending changes that have reached the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Nothing,
    /// All of them, as after killing the process.
    Everything,
    /// All entries and sizes, but no bytes.
    Entries,
    /// All bytes and sizes, but no entries.
    Bytes,
    /// All except this one; the size of a write takes effect.
    Without(EventIndex),
    /// All except the size set by this change and later sizes of the same file.
    Short(EventIndex),
    /// This one alone, with the entries that precede it.
    Only(EventIndex),
    /// All entries and sizes, and the bytes of this change.
    BytesOf(EventIndex),
    Random(u64),
}

/// The part of a write that has reached the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    All,
    None,
    /// Sectors chosen by this seed.
    Torn(u64),
}

/// The unit in which file contents reach the disk.
const SECTOR: usize = 512;

/// A choice applied to one image.
struct Selection<'i> {
    image: &'i Image,
    order: Order,
    choice: Choice,
    /// For [`Choice::Only`]: the limits of the entries that precede it.
    limits: BTreeMap<Node, EventIndex>,
    random: SmallRng,
}

/// The choices tried at a crash point: the fixed ones, up to `singles` pending changes each missing and each alone, and
/// `random` random ones.
pub(crate) fn choices(image: &Image, singles: usize, random: u64, seed: u64) -> Vec<Choice> {
    let mut choices = vec![Choice::Nothing, Choice::Everything];
    let pending = pending(image);
    if pending.is_empty() {
        return choices;
    }
    choices.extend([Choice::Entries, Choice::Bytes]);
    let mut rng = SmallRng::seed_from_u64(seed ^ image.now as u64);
    // The latest changes are those that the store is working on.
    let (old, new) = pending.split_at(pending.len().saturating_sub(singles.div_ceil(2)));
    let old = old.sample(&mut rng, singles.saturating_sub(new.len()));
    for (at, bytes, resizes) in old.chain(new) {
        choices.extend([Choice::Without(*at), Choice::Only(*at)]);
        if *bytes {
            choices.push(Choice::BytesOf(*at));
        }
        if *resizes {
            choices.push(Choice::Short(*at));
        }
    }
    choices.extend((0..random).map(Choice::Random));
    choices
}

/// The pending changes that can have a visible effect: the event, whether it changes bytes, and whether it changes a
/// size.
fn pending(image: &Image) -> Vec<(EventIndex, bool, bool)> {
    let reachable = image.reachable();
    let files = image.nodes.iter().enumerate().filter(|(node, _)| reachable.contains(node));
    let files = files.filter_map(|(_, kind)| match kind {
        Kind::File(file) => Some(file),
        Kind::Dir(_) => None,
    });
    let changes = files.flat_map(|file| file.pending.iter().map(|change| (change.at, true, change.resizes)));
    let mut all: Vec<_> = changes.chain(image.entries.iter().map(|change| (change.at, false, false))).collect();
    all.sort_unstable();
    all.dedup_by_key(|(at, _, _)| *at);
    all
}

/// The state that a choice produces.
pub(crate) fn state(image: &Image, choice: Choice, order: Order, seed: u64) -> Tree {
    let number = if let Choice::Random(number) = choice { number } else { 0 };
    let seed = xxh3_64_with_seed(&[(image.now as u64).to_le_bytes(), number.to_le_bytes()].concat(), seed);
    let mut limits = BTreeMap::new();
    if let (Choice::Only(at), Order::Ordered) = (choice, order)
        && let Some(change) = image.entries.iter().find(|change| change.at == at)
    {
        limits = image.limits(change.what.dirs().into_iter().map(|dir| (dir, at + 1)).collect());
    }
    let mut chosen = Selection { image, order, choice, limits, random: SmallRng::seed_from_u64(seed) };
    let dirs = chosen.dirs();
    let mut tree = Tree::default();
    chosen.take(&mut tree, &dirs, ROOT_NODE, "");
    tree
}

impl Selection<'_> {
    /// The directory entries after some pending changes.
    fn dirs(&mut self) -> BTreeMap<Node, BTreeMap<String, Node>> {
        let changed: BTreeSet<Node> = self.image.entries.iter().flat_map(|change| change.what.dirs()).collect();
        let cuts: BTreeMap<Node, EventIndex> = changed.iter().map(|dir| (*dir, self.cut(*dir))).collect();
        let mut dirs = changed.iter().map(|dir| (*dir, self.image.dir(*dir).durable.clone())).collect();
        let mut ended = BTreeSet::new();
        for change in &self.image.entries {
            let of = change.what.dirs();
            let wanted = match self.choice {
                Choice::Nothing | Choice::Bytes => false,
                Choice::Everything | Choice::Entries | Choice::Short(_) | Choice::BytesOf(_) => true,
                Choice::Without(at) => change.at != at,
                Choice::Only(at) => change.at == at || change.is_within(&self.limits),
                Choice::Random(_) if self.order == Order::Any => self.random.random_bool(0.6),
                Choice::Random(_) => of.iter().all(|dir| change.at < cuts[dir]),
            };
            if wanted && !(self.order == Order::Ordered && of.iter().any(|dir| ended.contains(dir))) {
                change.what.apply(&mut dirs);
            } else {
                ended.extend(of);
            }
        }
        dirs
    }

    /// The last directory change that a random state includes.
    fn cut(&mut self, dir: Node) -> EventIndex {
        let of_dir = self.image.entries.iter().filter(|change| change.what.dirs().contains(&dir));
        let ats: Vec<EventIndex> = of_dir.map(|change| change.at).collect();
        match self.random.random_range(0..3) {
            0 => 0,
            1 => EventIndex::MAX,
            _ => *ats.choose(&mut self.random).unwrap_or(&0),
        }
    }

    fn take(&mut self, tree: &mut Tree, dirs: &BTreeMap<Node, BTreeMap<String, Node>>, dir: Node, prefix: &str) {
        let image = self.image;
        let entries = dirs.get(&dir).unwrap_or(&image.dir(dir).durable);
        for (name, node) in entries {
            let path = format!("{prefix}{name}");
            match &image.nodes[*node] {
                Kind::Dir(_) => {
                    self.take(tree, dirs, *node, &format!("{path}/"));
                    tree.0.insert(path, None);
                }
                Kind::File(file) => {
                    let bytes = self.bytes(file);
                    tree.0.insert(path, Some(bytes));
                }
            }
        }
    }

    /// The contents of a file.
    fn bytes(&mut self, file: &File) -> Arc<Vec<u8>> {
        if file.pending.is_empty() || self.choice == Choice::Nothing {
            return Arc::clone(&file.durable);
        }
        let limit = self.size_limit(file);
        let (mode, share) = (self.random.random_range(0..4), self.random.random_range(0.1..0.9));
        let last = self.random.random_range(0..file.pending.len());
        let mut bytes = Cow::Borrowed(&**file.durable);
        // Bytes beyond a size that did not take effect are in blocks that the file does not have.
        let mut end = u64::MAX;
        for (number, change) in file.pending.iter().enumerate() {
            let (at, sized) = (change.at, change.at < limit);
            let part = match self.choice {
                Choice::Everything | Choice::Bytes | Choice::Short(_) => Part::All,
                Choice::Nothing | Choice::Entries => Part::None,
                Choice::Without(without) => {
                    if at == without {
                        Part::None
                    } else {
                        Part::All
                    }
                }
                Choice::Only(only) | Choice::BytesOf(only) => {
                    if at == only {
                        Part::All
                    } else {
                        Part::None
                    }
                }
                Choice::Random(_) => match mode {
                    0 => Part::None,
                    1 => Part::All,
                    2 if number < last => Part::All,
                    2 if number > last => Part::None,
                    2 => Part::Torn(self.random.random()),
                    _ if !self.random.random_bool(share) => Part::None,
                    _ if self.random.random_bool(0.3) => Part::Torn(self.random.random()),
                    _ => Part::All,
                },
            };
            if !sized && let Data::Size(size) = change.what {
                end = end.min(size);
            }
            if sized || part != Part::None {
                change.what.apply_part(bytes.to_mut(), part, sized, end);
            }
        }
        match bytes {
            Cow::Borrowed(_) => Arc::clone(&file.durable),
            Cow::Owned(bytes) => Arc::new(bytes),
        }
    }

    /// The last event whose file size takes effect.
    fn size_limit(&mut self, file: &File) -> EventIndex {
        let mut resizing = file.pending.iter().filter(|change| change.resizes).map(|change| change.at);
        match self.choice {
            Choice::Nothing => 0,
            Choice::Everything | Choice::Entries | Choice::Bytes | Choice::Without(_) | Choice::BytesOf(_) => {
                EventIndex::MAX
            }
            Choice::Short(at) => {
                if resizing.any(|other| other == at) {
                    at
                } else {
                    EventIndex::MAX
                }
            }
            Choice::Only(at) => {
                if resizing.any(|other| other == at) {
                    at + 1
                } else {
                    0
                }
            }
            Choice::Random(_) => {
                let ats: Vec<EventIndex> = resizing.collect();
                match self.random.random_range(0..4) {
                    0 => 0,
                    1 | 2 => EventIndex::MAX,
                    _ => *ats.choose(&mut self.random).unwrap_or(&0),
                }
            }
        }
    }
}

impl Data {
    /// Applies a part of a change. The size takes effect if `sized`; nothing at or beyond `end` does.
    fn apply_part(&self, bytes: &mut Vec<u8>, part: Part, sized: bool, end: u64) {
        let grow = |bytes: &mut Vec<u8>, to: u64| {
            if sized && to > bytes.len() as u64 {
                bytes.resize(to as usize, 0);
            }
        };
        match self {
            Self::Size(size) if sized => bytes.resize(*size as usize, 0),
            Self::Size(_) => {}
            Self::Grow(to) => grow(bytes, *to),
            Self::Write { offset, data } => {
                grow(bytes, offset + data.len() as u64);
                let end = end.min(bytes.len() as u64) as usize;
                each_sector(*offset as usize, data.len(), end, part, |at, len| {
                    bytes[at..at + len].copy_from_slice(&data[at - *offset as usize..][..len]);
                });
            }
            Self::Zero { offset, len, grows } => {
                if *grows {
                    grow(bytes, offset + len);
                }
                let end = end.min(bytes.len() as u64) as usize;
                each_sector(*offset as usize, *len as usize, end, part, |at, len| bytes[at..at + len].fill(0));
            }
        }
    }
}

/// Calls `copy` with the offset and length of each included part of a range, up to `end`.
fn each_sector(offset: usize, len: usize, end: usize, part: Part, mut copy: impl FnMut(usize, usize)) {
    let to = (offset + len).min(end);
    match part {
        Part::None => {}
        Part::All if offset < to => copy(offset, to - offset),
        Part::All => {}
        Part::Torn(seed) => {
            let mut random = SmallRng::seed_from_u64(seed);
            let share = random.random_range(0.1..0.9);
            let mut at = offset;
            while at < to {
                let next = ((at / SECTOR + 1) * SECTOR).min(to);
                if random.random_bool(share) {
                    copy(at, next - at);
                }
                at = next;
            }
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => write!(f, "nothing"),
            Self::Everything => write!(f, "everything"),
            Self::Entries => write!(f, "entries"),
            Self::Bytes => write!(f, "bytes"),
            Self::Without(at) => write!(f, "without:{at}"),
            Self::Short(at) => write!(f, "short:{at}"),
            Self::Only(at) => write!(f, "only:{at}"),
            Self::BytesOf(at) => write!(f, "beside:{at}"),
            Self::Random(number) => write!(f, "random:{number}"),
        }
    }
}

impl Choice {
    pub(crate) fn parse(text: &str) -> Self {
        let (name, number) = text.split_once(':').unwrap_or((text, "0"));
        let at = number.parse().expect("a number behind the colon");
        match name {
            "nothing" => Self::Nothing,
            "everything" => Self::Everything,
            "entries" => Self::Entries,
            "bytes" => Self::Bytes,
            "without" => Self::Without(at),
            "short" => Self::Short(at),
            "only" => Self::Only(at),
            "beside" => Self::BytesOf(at),
            "random" => Self::Random(at as u64),
            _ => panic!("no state is called {text}"),
        }
    }
}
