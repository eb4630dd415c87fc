//! The pages of sled's tree, from its messages.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bytes::Bytes;

use super::{
    super::pages::{IndexPages, LostRange, ScannedEntry},
    format::{Data, Header, Link, Message, MessageKind, Node, is_of_other, roots},
    positions::Positions,
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
    /// The LSN behind it.
    pub(super) end: u64,
    /// The LSN up to which messages behind it may be others than those that were written there.
    pub(super) doubtful_until: u64,
    /// The page that its message changed, if its header can be read.
    pub(super) page: Option<u64>,
}

impl Gap {
    /// A part whose place in the log is unknown.
    pub(super) const ANYWHERE: Self = Self { lsn: u64::MAX, end: u64::MAX, doubtful_until: u64::MAX, page: None };
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
    /// The positions of the messages before some LSN, if a file has them.
    positions: Option<Positions>,
    /// Entries of damaged messages.
    damaged: Vec<ScannedEntry>,
    /// The LSN behind the last message.
    end: u64,
    /// True if messages that nothing makes doubtful are not where the positions say.
    disagrees: bool,
}

/// The messages of a batch, which counts only as a whole.
struct Batch {
    last_lsn: u64,
    messages: Vec<(u64, u64, Change)>,
}

#[derive(Default)]
struct Page {
    /// The replacement and its LSN.
    base: Option<(u64, Node)>,
    /// The links behind it, with their LSNs.
    links: Vec<(u64, Link)>,
}

/// What a message does with a page.
enum Change {
    Replace(Node),
    Link(Link),
    Free,
}

impl Pages {
    pub(super) fn new(positions: Option<Positions>) -> Self {
        Self { positions, ..Self::default() }
    }

    /// Applies a message between two LSNs. Messages come in the order of their LSNs.
    pub(super) fn apply(&mut self, lsn: u64, end: u64, message: &Message<'_>) {
        let page = message.header.page;
        self.end = end;
        let is_listed = matches!(message.header.kind, MessageKind::Node | MessageKind::Link | MessageKind::Free);
        if is_listed && self.positions.as_ref().is_some_and(|positions| !positions.may_have(page, lsn)) {
            self.disagrees |= !self.gaps.iter().any(|gap| gap.lsn < lsn && lsn < gap.doubtful_until);
            return;
        }
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
                _ => return self.gaps.push(Gap { lsn, end, doubtful_until: end, page: Some(page) }),
            },
            MessageKind::Link => match Link::parse(message.body) {
                Some(link) => Some(Change::Link(link)),
                None => return self.gaps.push(Gap { lsn, end, doubtful_until: end, page: Some(page) }),
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
            Change::Link(link) => self.pages.entry(page).or_default().links.push((lsn, link)),
            Change::Free => drop(self.pages.remove(&page)),
        }
    }

    /// True if the damaged message at an offset changed the page that its header names, as far as its body shows. The
    /// number of the page may be what is damaged, and bytes behind it too.
    pub(super) fn has_changed(&self, lsn: u64, bytes: &[u8], at: usize, header: &Header) -> bool {
        if let Some(positions) = self.positions.as_ref().filter(|positions| lsn < positions.until) {
            return positions.names(header.page, lsn);
        }
        let Some(node) = self.node(header.page) else { return false };
        let body = bytes.get(header.start..header.end).unwrap_or_default();
        let fits = match header.kind {
            MessageKind::Link => Link::key(body).is_some_and(|key| node.contains(key)),
            MessageKind::Node => {
                Node::parse(body).is_some_and(|(damaged, _)| damaged.low == node.low && !node.low.is_empty())
            }
            _ => false,
        };
        fits && !is_of_other(bytes, at, header, self.pages.keys().copied())
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
                let prefix = self.node(page).map(Node::key_prefix).unwrap_or_default();
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
        let is_linked = chain.is_some();
        let mut live = chain.unwrap_or_else(|| self.leaves().map(|(number, _)| number).collect());
        let mut current = self.current_of(&live);
        let mut found =
            IndexPages { entries: std::mem::take(&mut self.damaged), lost: self.lost(), is_uncertain: false };
        if self.positions.is_none() && !is_linked {
            found.is_uncertain = true;
            self.remove_overlapping(&mut current, &live);
            found.lost.extend(self.holes(&live));
        } else if self.positions.is_some() && (!is_linked || current.len() < live.len()) {
            // The chain may be one of an earlier state. Everything that a proven page does not cover is lost.
            live = self.leaves().map(|(number, _)| number).filter(|number| !self.is_unused(*number)).collect();
            current = self.current_of(&live);
            self.remove_detached(&mut current);
            let all = current.iter().copied().collect::<Vec<_>>();
            self.remove_overlapping(&mut current, &all);
            found.lost.extend(self.holes(&current));
        }
        for number in live {
            let Some(page) = self.pages.get(&number) else { continue };
            let is_current = current.contains(&number);
            found.is_uncertain |= !is_current && !self.has_bounds(number, page);
            found.entries.extend(page.entries(is_current));
        }
        if !found.lost.is_empty() {
            found.entries.extend(self.entries_without_pages());
        }
        found
    }

    /// True if the log does not end before the positions, nor has other messages there.
    pub(super) fn agree_with_positions(&self) -> bool {
        !self.disagrees && self.positions.as_ref().is_none_or(|positions| positions.last() < self.end)
    }

    /// The leaves from the first to the last, if none of them is missing.
    fn chain(&self) -> Option<Vec<u64>> {
        let mut number = self.root?;
        for _ in 0..MAX_DEPTH {
            match &self.node(number)?.data {
                Data::Index(children) => number = *children.first()?,
                Data::Leaf(_) => break,
            }
        }
        let (mut chain, mut seen, mut high) = (Vec::new(), HashSet::new(), Vec::new());
        loop {
            let node = self.node(number)?;
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

    /// The pages of these that can miss no change.
    fn current_of(&self, numbers: &[u64]) -> BTreeSet<u64> {
        let is_current = |number: &u64| self.pages.get(number).is_some_and(|page| self.is_current(*number, page));
        numbers.iter().copied().filter(is_current).collect()
    }

    /// True if no change of a page can be missing.
    fn is_current(&self, number: u64, page: &Page) -> bool {
        let Some((lsn, _)) = page.base else { return false };
        let known = self.positions.as_ref().is_none_or(|positions| {
            // Before the LSN of the positions no message is missing that they do not name.
            lsn >= positions.until || positions.are_all(number, page.lsns())
        });
        let from = lsn.max(self.known_until());
        let is_listed = page.lsns().all(|lsn| lsn < from);
        let concerns = |gap: &Gap| {
            let end = if is_listed { gap.end } else { gap.doubtful_until };
            end > from && gap.page.is_none_or(|page| page == number)
        };
        let is_merging = || page.links.iter().any(|(_, link)| matches!(link, Link::Merge));
        known && from >= self.missing_before && !self.gaps.iter().any(concerns) && !is_merging()
    }

    /// True if it is known which keys are lost with a page that is not current.
    fn has_bounds(&self, number: u64, page: &Page) -> bool {
        if self.gaps.iter().any(|gap| gap.page == Some(number)) {
            return true;
        }
        let from = page.base.as_ref().map_or(0, |(lsn, _)| *lsn).max(self.known_until());
        let concerns = |gap: &Gap| gap.end > from && gap.page.is_none();
        self.positions.is_some() && from >= self.missing_before && !self.gaps.iter().any(concerns)
    }

    /// True if a page with a message was not in use any more, or not yet.
    fn is_unused(&self, number: u64) -> bool {
        let Some(positions) = &self.positions else { return false };
        let lsn = self.pages.get(&number).and_then(|page| page.lsns().last());
        lsn.is_some_and(|lsn| lsn < positions.until) && !positions.is_in_use(number)
    }

    /// The LSN before which the positions of all messages are known.
    fn known_until(&self) -> u64 {
        self.positions.as_ref().map_or(0, |positions| positions.until)
    }

    /// Removes pages that a crash left: the second part of a page that was being split, to which no other one refers, and one
    /// that was being merged.
    fn remove_detached(&self, numbers: &mut BTreeSet<u64>) {
        let nodes = self.pages.values().filter_map(|page| Some(&page.base.as_ref()?.1));
        let references = nodes.flat_map(|node| {
            let children = if let Data::Index(children) = &node.data { children.as_slice() } else { &[] };
            children.iter().copied().chain(node.next)
        });
        let referenced: HashSet<u64> = references.chain(self.root).collect();
        let is_merging = |number| self.node(number).is_some_and(|node| node.is_merging);
        numbers.retain(|number| referenced.contains(number) && !is_merging(*number));
    }

    fn node(&self, number: u64) -> Option<&Node> {
        Some(&self.pages.get(&number)?.base.as_ref()?.1)
    }

    fn leaves(&self) -> impl Iterator<Item = (u64, &Node)> {
        let nodes = self.pages.iter().filter_map(|(number, page)| Some((*number, &page.base.as_ref()?.1)));
        nodes.filter(|(_, node)| matches!(node.data, Data::Leaf(_)))
    }

    /// Removes the leaves whose bounds overlap with others: some of them were freed or split, and it is unknown which.
    fn remove_overlapping(&self, numbers: &mut BTreeSet<u64>, others: &[u64]) {
        let mut sorted: Vec<_> = others.iter().filter_map(|number| Some((*number, self.node(*number)?))).collect();
        sorted.sort_by(|(_, one), (_, other)| one.low.cmp(&other.low));
        let mut reach: Option<(u64, &[u8])> = None;
        for (number, node) in sorted {
            if let Some((before, high)) = reach
                && (high.is_empty() || node.low.as_slice() < high)
            {
                numbers.remove(&before);
                numbers.remove(&number);
            }
            if reach.is_none_or(|(_, high)| !high.is_empty() && (node.high.is_empty() || node.high.as_slice() > high)) {
                reach = Some((number, &node.high));
            }
        }
    }

    /// The parts of the key space that no leaf of these covers.
    fn holes<'n>(&self, leaves: impl IntoIterator<Item = &'n u64>) -> Vec<LostRange> {
        let nodes = leaves.into_iter().filter_map(|number| self.node(*number));
        let mut sorted: Vec<_> = nodes.map(|node| (&node.low, &node.high)).collect();
        sorted.sort();
        let (mut holes, mut reach) = (Vec::new(), Some(Vec::new()));
        let place = match &self.gaps[..] {
            [gap] if gap.lsn < u64::MAX => format!("index: the message at LSN {}", gap.lsn),
            _ => "index: a page that is missing".to_owned(),
        };
        let hole = |from: &[u8], to: Option<&[u8]>| LostRange {
            from: Bytes::copy_from_slice(from),
            to: to.map(Bytes::copy_from_slice),
            place: place.clone(),
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
        for gap in self.gaps.iter().filter(|gap| gap.end > self.known_until()) {
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
        let mut prefixes: Vec<&[u8]> = self.leaves().map(|(_, node)| node.key_prefix()).collect();
        prefixes.push(b"");
        prefixes.sort_unstable();
        prefixes.dedup();
        prefixes.truncate(MAX_PREFIXES);
        let links = self.pages.values().filter(|page| page.base.is_none()).flat_map(|page| &page.links);
        let sets = links.filter_map(|(_, link)| match link {
            Link::Set(key, value) => Some((key, value)),
            Link::Delete(_) | Link::Merge => None,
        });
        sets.flat_map(|(key, value)| prefixes.iter().map(move |prefix| entry(prefix, key, value, false))).collect()
    }
}

impl Page {
    /// The LSNs of its messages.
    fn lsns(&self) -> impl Iterator<Item = u64> {
        self.base.iter().map(|(lsn, _)| *lsn).chain(self.links.iter().map(|(lsn, _)| *lsn))
    }

    /// The entries of a leaf with its links.
    fn entries(&self, current: bool) -> Vec<ScannedEntry> {
        let Some((_, node)) = &self.base else { return Vec::new() };
        let Data::Leaf(leaf) = &node.data else { return Vec::new() };
        let mut entries: BTreeMap<&[u8], &[u8]> = leaf.iter().map(|(key, value)| (&**key, &**value)).collect();
        for (_, link) in &self.links {
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
