//! The pages of sled's tree, from its messages.

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;

use super::{
    super::pages::{IndexPages, LostRange, ScannedEntry},
    format::{Data, Link, Message, MessageKind, Node, roots},
};

/// The tree of the index.
const TREE: &[u8] = b"__sled__default";
/// The largest depth of a tree that is followed.
const MAX_DEPTH: usize = 64;
/// The number of prefixes that keys of pages without their start are tried with.
const MAX_PREFIXES: usize = 256;

/// A damaged part of the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// The LSN of its start.
    pub(super) lsn: u64,
    /// The page that its message changed, if its header can be read.
    pub(super) page: Option<u64>,
}

/// All pages, as of the last message that was applied.
#[derive(Default)]
pub(super) struct Pages {
    pages: HashMap<u64, Page>,
    root: Option<u64>,
    /// The messages of a batch that is not complete yet.
    batch: Option<Batch>,
    /// The damaged parts of the log.
    pub(super) gaps: Vec<Gap>,
    /// An LSN before which segments do not exist: they were free, or were lost.
    pub(super) missing_before: u64,
    /// Entries of damaged messages.
    damaged: Vec<ScannedEntry>,
}

/// The messages of a batch, which counts only as a whole.
struct Batch {
    last_lsn: u64,
    messages: Vec<(u64, u64, Change)>,
}

#[derive(Default)]
struct Page {
    base: Option<(u64, Node)>,
    links: Vec<Link>,
}

/// What a message does with a page.
enum Change {
    Replace(Node),
    Link(Link),
    Free,
}

impl Pages {
    /// Applies a message between two LSNs. Messages come in the order of their LSNs.
    pub(super) fn apply(&mut self, lsn: u64, end: u64, message: &Message<'_>) {
        let page = message.header.page;
        let change = match message.header.kind {
            MessageKind::Other | MessageKind::Cap => None,
            MessageKind::Batch => {
                self.end_batch();
                let last_lsn = message.body.first_chunk().map_or(0, |lsn| u64::from_le_bytes(*lsn));
                self.batch = Some(Batch { last_lsn, messages: Vec::new() });
                return;
            }
            MessageKind::Free => Some(Change::Free),
            MessageKind::Roots => {
                self.root = roots(message.body).into_iter().find(|(name, _)| name == TREE).map(|(_, page)| page);
                None
            }
            MessageKind::Node => match Node::parse(message.body) {
                Some((node, true)) => Some(Change::Replace(node)),
                _ => return self.gaps.push(Gap { lsn, page: Some(page) }),
            },
            MessageKind::Link => match Link::parse(message.body) {
                Some(link) => Some(Change::Link(link)),
                None => return self.gaps.push(Gap { lsn, page: Some(page) }),
            },
        };
        match (&mut self.batch, change) {
            (Some(batch), change) => {
                batch.messages.extend(change.map(|change| (lsn, page, change)));
                if end >= batch.last_lsn {
                    self.end_batch();
                }
            }
            (None, Some(change)) => self.change(lsn, page, change),
            (None, None) => {}
        }
    }

    fn end_batch(&mut self) {
        for (lsn, page, change) in self.batch.take().map(|batch| batch.messages).unwrap_or_default() {
            self.change(lsn, page, change);
        }
    }

    fn change(&mut self, lsn: u64, page: u64, change: Change) {
        match change {
            Change::Replace(node) => {
                self.pages.insert(page, Page { base: Some((lsn, node)), links: Vec::new() });
            }
            Change::Link(link) => self.pages.entry(page).or_default().links.push(link),
            Change::Free => drop(self.pages.remove(&page)),
        }
    }

    /// True if the body of a damaged message is one of a page: a number that is damaged has damaged bytes behind it, up to
    /// the end of a sector, and then neither the lengths of a link fit nor the bounds of a node.
    pub(super) fn has_changed(&self, page: u64, kind: MessageKind, body: &[u8]) -> bool {
        let Some((_, node)) = self.pages.get(&page).and_then(|page| page.base.as_ref()) else { return false };
        match kind {
            MessageKind::Link => Link::fits(body),
            MessageKind::Node => {
                Node::parse(body).is_some_and(|(damaged, _)| damaged.low == node.low && !node.low.is_empty())
            }
            _ => false,
        }
    }

    /// Takes the entries of a damaged message, as far as it can be parsed.
    pub(super) fn add_damaged(&mut self, lsn: u64, page: u64, kind: MessageKind, body: &[u8]) {
        match kind {
            MessageKind::Node => {
                let Some((node, _)) = Node::parse(body) else { return };
                let page = Page { base: Some((lsn, node)), links: Vec::new() };
                self.damaged.extend(page.entries(false));
            }
            MessageKind::Link => {
                let Some(Link::Set(key, value)) = Link::parse(body) else { return };
                let prefix = self.pages.get(&page).and_then(|page| page.base.as_ref());
                let prefix = prefix.map(|(_, node)| node.key_prefix()).unwrap_or_default();
                self.damaged.push(entry(prefix, &key, &value, false));
            }
            _ => {}
        }
    }

    /// The entries of all pages.
    pub(super) fn into_index(mut self) -> IndexPages {
        // A batch that is not complete never counted, and what follows it neither.
        self.batch = None;
        let chain = self.chain();
        let lost = self.lost();
        let mut found = IndexPages { entries: std::mem::take(&mut self.damaged), lost, is_uncertain: chain.is_none() };
        let overlapping = if chain.is_some() { HashSet::new() } else { self.overlapping() };
        if chain.is_none() {
            found.lost.extend(self.holes());
        }
        let live = chain.unwrap_or_else(|| self.leaves().map(|(number, ..)| number).collect());
        for number in live {
            let Some(page) = self.pages.get(&number) else { continue };
            let current = self.is_current(number, page) && !overlapping.contains(&number);
            found.is_uncertain |= !current && !self.gaps.iter().any(|gap| gap.page == Some(number));
            found.entries.extend(page.entries(current));
        }
        if !found.lost.is_empty() {
            found.entries.extend(self.entries_without_pages());
        }
        found
    }

    /// The leaves from the first to the last, if none of them is missing.
    fn chain(&self) -> Option<Vec<u64>> {
        let mut number = self.root?;
        for _ in 0..MAX_DEPTH {
            match &self.pages.get(&number)?.base.as_ref()?.1.data {
                Data::Index(children) => number = *children.first()?,
                Data::Leaf(_) => break,
            }
        }
        let (mut chain, mut seen, mut high) = (Vec::new(), HashSet::new(), Vec::new());
        loop {
            let node = &self.pages.get(&number)?.base.as_ref()?.1;
            if !matches!(node.data, Data::Leaf(_)) || node.low != high || !seen.insert(number) {
                return None;
            }
            chain.push(number);
            high.clone_from(&node.high);
            match node.next {
                Some(next) => number = next,
                None => return node.high.is_empty().then_some(chain),
            }
        }
    }

    /// True if no change of a page can be missing.
    fn is_current(&self, number: u64, page: &Page) -> bool {
        let Some((lsn, _)) = page.base else { return false };
        let concerns = |gap: &&Gap| gap.lsn > lsn && gap.page.is_none_or(|page| page == number);
        lsn >= self.missing_before
            && !self.gaps.iter().any(|gap| concerns(&gap))
            && !page.links.iter().any(|link| matches!(link, Link::Merge))
    }

    fn leaves(&self) -> impl Iterator<Item = (u64, u64, &Node)> {
        let bases = self.pages.iter().filter_map(|(number, page)| Some((*number, page.base.as_ref()?)));
        let leaves = bases.filter(|(_, (_, node))| matches!(node.data, Data::Leaf(_)));
        leaves.map(|(number, (lsn, node))| (number, *lsn, node))
    }

    /// The leaves whose bounds overlap: some of them were freed or split, and it is unknown which.
    fn overlapping(&self) -> HashSet<u64> {
        let mut sorted: Vec<_> = self.leaves().collect();
        sorted.sort_by(|(_, _, one), (_, _, other)| one.low.cmp(&other.low));
        let mut overlapping = HashSet::new();
        let mut reach: Option<(u64, &[u8])> = None;
        for (number, _, node) in sorted {
            if let Some((before, high)) = reach
                && (high.is_empty() || node.low.as_slice() < high)
            {
                overlapping.extend([before, number]);
            }
            if reach.is_none_or(|(_, high)| !high.is_empty() && (node.high.is_empty() || node.high.as_slice() > high)) {
                reach = Some((number, &node.high));
            }
        }
        overlapping
    }

    /// The parts of the key space that no leaf covers.
    fn holes(&self) -> Vec<LostRange> {
        let mut sorted: Vec<_> = self.leaves().map(|(_, _, node)| (&node.low, &node.high)).collect();
        sorted.sort();
        let (mut holes, mut reach) = (Vec::new(), Some(Vec::new()));
        let hole = |from: &[u8], to: Option<&[u8]>| LostRange {
            from: Bytes::copy_from_slice(from),
            to: to.map(Bytes::copy_from_slice),
            place: "index: a page that is missing".to_owned(),
        };
        for (low, high) in sorted {
            let Some(end) = &reach else { break };
            if low > end {
                holes.push(hole(end, Some(low)));
            }
            if high.is_empty() {
                reach = None;
            } else if high > end {
                reach = Some(high.clone());
            }
        }
        if let Some(end) = reach {
            holes.push(hole(&end, None));
        }
        holes
    }

    /// The keys that damaged messages may have had.
    fn lost(&self) -> Vec<LostRange> {
        let mut lost = BTreeMap::new();
        for gap in &self.gaps {
            let place = format!("index: the message at LSN {}", gap.lsn);
            let range = match gap.page {
                None => LostRange::all(place),
                Some(page) => match self.pages.get(&page).and_then(|page| page.base.as_ref()) {
                    // A later message replaced it.
                    Some((lsn, _)) if *lsn > gap.lsn => continue,
                    Some((_, node)) => LostRange {
                        from: Bytes::copy_from_slice(&node.low),
                        to: (!node.high.is_empty()).then(|| Bytes::copy_from_slice(&node.high)),
                        place,
                    },
                    None => LostRange::all(place),
                },
            };
            lost.entry((gap.page, range.from.clone())).or_insert(range);
        }
        lost.into_values().collect()
    }

    /// Entries of links whose pages have no start: their keys are tried with the prefixes of other pages, and the
    /// checksums of records tell which one is right.
    fn entries_without_pages(&self) -> Vec<ScannedEntry> {
        let mut prefixes: Vec<&[u8]> = self.leaves().map(|(_, _, node)| node.key_prefix()).collect();
        prefixes.push(b"");
        prefixes.sort_unstable();
        prefixes.dedup();
        prefixes.truncate(MAX_PREFIXES);
        let links = self.pages.values().filter(|page| page.base.is_none()).flat_map(|page| &page.links);
        let sets = links.filter_map(|link| match link {
            Link::Set(key, value) => Some((key, value)),
            Link::Delete(_) | Link::Merge => None,
        });
        sets.flat_map(|(key, value)| prefixes.iter().map(move |prefix| entry(prefix, key, value, false))).collect()
    }
}

impl Page {
    /// The entries of a leaf with its links.
    fn entries(&self, current: bool) -> Vec<ScannedEntry> {
        let Some((_, node)) = &self.base else { return Vec::new() };
        let Data::Leaf(leaf) = &node.data else { return Vec::new() };
        let mut entries: BTreeMap<&[u8], &[u8]> = leaf.iter().map(|(key, value)| (&**key, &**value)).collect();
        for link in &self.links {
            match link {
                Link::Set(key, value) => drop(entries.insert(key, value)),
                Link::Delete(key) => drop(entries.remove(&**key)),
                Link::Merge => {}
            }
        }
        let prefix = node.key_prefix();
        entries.into_iter().map(|(key, value)| entry(prefix, key, value, current)).collect()
    }
}

fn entry(prefix: &[u8], key: &[u8], value: &[u8], current: bool) -> ScannedEntry {
    ScannedEntry { key: [prefix, key].concat().into(), value: Bytes::copy_from_slice(value), current }
}
