//! The pages of a redb index, read without redb.
//!
//! A branch page has the checksum of each of its children, and a commit slot that of the root. So a page that agrees with
//! a checksum which was reached from the newest commit is the current one, whatever else is damaged. Where no such path is
//! left, all pages of the file are searched for entries.
//!
//! redb does not compare checksums when it reads a page. A change below a damaged branch copies pages to where they do not
//! belong, with valid checksums, so keys are compared with what the branches above say too.
//!
//! ```text
//! super-header, one page: magic, geometry, two commit slots of 128 bytes at 64 and 192
//! slot:   version u8, has root u8, …, root at 8: page u64, checksum u128, length u64; transaction at 104: u64;
//!         checksum u128 at 112
//! leaf:   1 u8, 0 u8, count u16, ends of keys u32 each, ends of values u32 each, keys, values
//! branch: 2 u8, 0 u8, count u16, 0 u32, checksums u128 of count + 1 children, their pages u64, ends of keys u32, keys
//! ```
//!
//! Numbers are little-endian, and checksums are those of XXH3-128 up to the end of the last value or key.

use std::{collections::HashSet, fs::File, io, path::Path};

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_128;

use super::pages::{IndexPages, LostRange, ScannedEntry, read_part, to_usize};
use crate::{regular_file, repair::repair_bit};

const PAGE: u64 = 4096;
const MAGIC: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";
const SLOTS: [usize; 2] = [64, 192];
const SLOT: usize = 128;
const LEAF: u8 = 1;
const BRANCH: u8 = 2;
/// The table of the index.
const TABLE: &[u8] = b"keys";
/// The largest order of a page: 4 KiB times two to the power of it.
const MAX_ORDER: u8 = 20;

/// The page that a parent refers to, and its checksum there.
#[derive(Clone, Copy, Debug)]
struct PageRef {
    number: u64,
    checksum: u128,
}

/// Where regions are in the file.
#[derive(Clone, Copy)]
struct Geometry {
    header_pages: u64,
    region_pages: u64,
}

/// Keys below a page: from the first one on, and before the second one.
type Bounds = (Bytes, Option<Bytes>);

/// A page to be visited.
struct Visit {
    page: PageRef,
    bounds: Bounds,
}

struct Scan<'f> {
    file: &'f File,
    geometry: Geometry,
    /// The offsets of pages that were visited.
    visited: HashSet<u64>,
    found: IndexPages,
}

/// Reads the pages of an index file.
pub(super) fn scan(path: &Path) -> IndexPages {
    let file = match regular_file::open(path) {
        Ok(file) => file,
        Err(error) => {
            return IndexPages { lost: vec![LostRange::all(format!("index: {error}"))], ..IndexPages::default() };
        }
    };
    let (mut scan, header) = Scan::new(&file);
    match scan.table(&header) {
        Some(Some(root)) => scan.visit_entries(root),
        // The table is empty.
        Some(None) => {}
        None => scan.lose((Bytes::new(), None), "its root"),
    }
    if !scan.found.lost.is_empty() {
        scan.search_all();
    }
    scan.found
}

/// True if each page of the index agrees with its checksum, and has keys that belong there. Reads all of them.
pub(super) fn is_whole(path: &Path) -> io::Result<bool> {
    let file = regular_file::open(path)?;
    let (mut scan, header) = Scan::new(&file);
    let is_sound = |page: PageRef| scan.bytes(page).is_some_and(|bytes| agrees(&bytes, page));
    // The tree of tables is one leaf.
    if !newest_root(&header).is_some_and(is_sound) {
        return Ok(false);
    }
    let Some(root) = scan.table(&header) else { return Ok(false) };
    let mut waiting: Vec<Visit> = root.map(Visit::root).into_iter().collect();
    while let Some(Visit { page, bounds }) = waiting.pop() {
        let sound = scan.bytes(page).filter(|bytes| agrees(bytes, page) && is_within(bytes, &bounds));
        let Some(bytes) = sound else { return Ok(false) };
        push_children(&bytes, &bounds, &mut waiting);
    }
    Ok(true)
}

impl Visit {
    fn root(page: PageRef) -> Self {
        Self { page, bounds: (Bytes::new(), None) }
    }
}

impl Geometry {
    fn of(header: &[u8]) -> Self {
        let field = |at: usize| u32_at(header, at).map(u64::from);
        match (header.starts_with(MAGIC), field(16), field(20)) {
            (true, Some(header_pages), Some(region_pages))
                if header_pages < 1 << 20 && (1..=1 << 20).contains(&region_pages) =>
            {
                Self { header_pages, region_pages }
            }
            // That of new files.
            _ => Self { header_pages: 0, region_pages: 1 << 20 },
        }
    }

    /// The offset and length of a page.
    fn place(self, number: u64) -> Option<(u64, usize)> {
        let order = u8::try_from(number >> 59).ok().filter(|order| *order <= MAX_ORDER)?;
        let (index, region) = (number & (0xF_FFFF >> order), (number >> 20) & 0xF_FFFF);
        let len = PAGE.checked_shl(order.into())?;
        let region_len = self.header_pages.checked_add(self.region_pages)?.checked_mul(PAGE)?;
        let base =
            region.checked_mul(region_len)?.checked_add(PAGE)?.checked_add(self.header_pages.checked_mul(PAGE)?)?;
        Some((base.checked_add(index.checked_mul(len)?)?, usize::try_from(len).ok()?))
    }
}

/// The root of the tables in a commit slot with its transaction, if the slot is valid.
fn slot(header: &[u8], at: usize) -> Option<(u64, Option<PageRef>)> {
    let mut bytes = header.get(at..at.checked_add(SLOT)?)?.to_vec();
    let is_valid =
        |bytes: &[u8]| bytes.split_at_checked(112).is_some_and(|(body, sum)| u128_at(sum, 0) == Some(xxh3_128(body)));
    if bytes.iter().all(|byte| *byte == 0) || !is_valid(&bytes) && !repair_bit(&mut bytes, usize::MAX, is_valid) {
        return None;
    }
    let root = match bytes.get(1)? {
        0 => None,
        _ => Some(PageRef { number: u64_at(&bytes, 8)?, checksum: u128_at(&bytes, 16)? }),
    };
    Some((u64_at(&bytes, 104)?, root))
}

/// The root of the tables in the newest commit slot.
fn newest_root(header: &[u8]) -> Option<PageRef> {
    SLOTS.into_iter().filter_map(|at| slot(header, at)).max_by_key(|(transaction, _)| *transaction)?.1
}

impl<'f> Scan<'f> {
    /// The scan of a file, and the header of that.
    fn new(file: &'f File) -> (Self, Vec<u8>) {
        let header = read_part(file, 0, to_usize(PAGE)).bytes;
        let geometry = Geometry::of(&header);
        (Self { file, geometry, visited: HashSet::new(), found: IndexPages::default() }, header)
    }

    /// The root of the index's table: `None` if it cannot be found, `Some(None)` if the table is empty.
    fn table(&mut self, header: &[u8]) -> Option<Option<PageRef>> {
        let mut next = vec![newest_root(header)?];
        // The tree of tables has one entry, so it is one leaf.
        while let Some(page) = next.pop() {
            let bytes = self.verified(page)?;
            if bytes.first() == Some(&BRANCH) {
                next.extend(children(&bytes).into_iter().map(|(child, _)| child));
                continue;
            }
            let found = leaf_entries(&bytes).into_iter().find(|(key, _)| *key == TABLE);
            if let Some((_, definition)) = found {
                let root = || Some(PageRef { number: u64_at(definition, 10)?, checksum: u128_at(definition, 18)? });
                return match definition.get(9)? {
                    0 => Some(None),
                    _ => root().map(Some),
                };
            }
        }
        None
    }

    /// Visits all pages below the root of the table.
    fn visit_entries(&mut self, root: PageRef) {
        let mut waiting = vec![Visit::root(root)];
        while let Some(Visit { page, bounds }) = waiting.pop() {
            let Some((offset, len)) = self.geometry.place(page.number) else {
                self.lose(bounds, "a page out of the file");
                continue;
            };
            if !self.visited.insert(offset) {
                self.lose(bounds, "a page that is named twice");
                continue;
            }
            match self.verified(page) {
                Some(bytes) if !is_within(&bytes, &bounds) => self.visit_damaged(&bytes, bounds, offset, &mut waiting),
                Some(bytes) if bytes.first() == Some(&BRANCH) => push_children(&bytes, &bounds, &mut waiting),
                Some(bytes) => self.take_entries(&bytes, true),
                None => {
                    let bytes = read_part(self.file, offset, len.min(to_usize(PAGE))).bytes;
                    self.visit_damaged(&bytes, bounds, offset, &mut waiting);
                }
            }
        }
    }

    /// Takes what is left of a page that fails its checksum: children that agree with theirs are the current ones.
    fn visit_damaged(&mut self, bytes: &[u8], bounds: Bounds, offset: u64, waiting: &mut Vec<Visit>) {
        if bytes.first() == Some(&BRANCH) {
            // The keys that separate the children may be damaged too.
            for (child, _) in children(bytes) {
                if self.verified(child).is_some() {
                    waiting.push(Visit { page: child, bounds: bounds.clone() });
                }
            }
        }
        self.take_entries(bytes, false);
        self.lose(bounds, &format!("the page at byte {offset}"));
    }

    /// The bytes of a page if they agree with its checksum, perhaps after a repair.
    fn verified(&self, page: PageRef) -> Option<Vec<u8>> {
        let mut bytes = self.bytes(page)?;
        let is_valid = |bytes: &[u8]| agrees(bytes, page);
        (is_valid(&bytes) || repair_bit(&mut bytes, usize::MAX, is_valid)).then_some(bytes)
    }

    /// The bytes of a page, if it is within the file.
    fn bytes(&self, page: PageRef) -> Option<Vec<u8>> {
        let (offset, len) = self.geometry.place(page.number)?;
        // A damaged parent may name anything.
        let file_len = self.file.metadata().ok()?.len();
        let is_in_file = offset.checked_add(len as u64)? <= file_len;
        is_in_file.then(|| read_part(self.file, offset, len).bytes)
    }

    fn take_entries(&mut self, bytes: &[u8], current: bool) {
        let entries = leaf_entries(bytes).into_iter().map(|(key, value)| ScannedEntry {
            key: Bytes::copy_from_slice(key),
            value: Bytes::copy_from_slice(value),
            current,
        });
        self.found.entries.extend(entries);
    }

    fn lose(&mut self, (from, to): Bounds, place: &str) {
        self.found.lost.push(LostRange { from, to, place: format!("index: {place}") });
    }

    /// Takes the entries of all pages that were not visited: they may be of earlier commits.
    fn search_all(&mut self) {
        let len = self.file.metadata().map_or(0, |metadata| metadata.len());
        let mut offset = PAGE;
        let known = self.found.entries.len();
        while offset < len {
            if !self.visited.contains(&offset) {
                let bytes = read_part(self.file, offset, to_usize(PAGE)).bytes;
                self.take_entries(&bytes, false);
            }
            offset = offset.saturating_add(PAGE);
        }
        // Where the current pages are known, others are of earlier commits.
        let (lost, mut at) = (&self.found.lost, 0_usize);
        self.found.entries.retain(|entry| {
            at = at.saturating_add(1);
            at <= known || lost.iter().any(|range| range.contains(&entry.key))
        });
    }
}

fn push_children(bytes: &[u8], (from, to): &Bounds, waiting: &mut Vec<Visit>) {
    let mut first = from.clone();
    let children = children(bytes);
    for (page, last) in children {
        // A separator is at or above every key of the child before it, and below those of the next.
        let next = last.map(|last| Bytes::from([last, b"\0"].concat()));
        let end = next.clone().or_else(|| to.clone());
        waiting.push(Visit { page, bounds: (first, end) });
        first = next.unwrap_or_default();
    }
}

/// True if the bytes of a page agree with its checksum.
fn agrees(bytes: &[u8], page: PageRef) -> bool {
    let checked = checked_end(bytes).and_then(|end| bytes.get(..end));
    checked.is_some_and(|checked| xxh3_128(checked) == page.checksum)
}

/// True if a page has keys in order, all within bounds.
fn is_within(bytes: &[u8], (from, to): &Bounds) -> bool {
    let keys: Vec<&[u8]> = match bytes.first() {
        Some(&BRANCH) => children(bytes).into_iter().filter_map(|(_, last)| last).collect(),
        _ => leaf_entries(bytes).into_iter().map(|(key, _)| key).collect(),
    };
    let is_after_first = keys.first().is_none_or(|first| *first >= &**from);
    let is_before_last = keys.last().is_none_or(|last| to.as_deref().is_none_or(|to| *last < to));
    is_after_first && is_before_last && keys.is_sorted_by(|one, next| one < next)
}

/// The end of what the checksum of a page covers.
fn checked_end(bytes: &[u8]) -> Option<usize> {
    let count = usize::from(u16_at(bytes, 2)?);
    let last = count.checked_sub(1)?;
    let at = match *bytes.first()? {
        LEAF => 4_usize.checked_add(count.checked_add(last)?.checked_mul(4)?)?,
        BRANCH => key_ends(count)?.checked_add(last.checked_mul(4)?)?,
        _ => return None,
    };
    usize::try_from(u32_at(bytes, at)?).ok()
}

/// The offset of the ends of keys in a branch.
fn key_ends(count: usize) -> Option<usize> {
    count.checked_add(1)?.checked_mul(24)?.checked_add(8)
}

/// The children of a branch, each with the last key that it may have, `None` for the last child.
fn children(bytes: &[u8]) -> Vec<(PageRef, Option<&[u8]>)> {
    let parse = || {
        let count = usize::from(u16_at(bytes, 2)?);
        let numbers = count.checked_add(1)?.checked_mul(16)?.checked_add(8)?;
        let ends = key_ends(count)?;
        let mut start = ends.checked_add(count.checked_mul(4)?)?;
        let mut found = Vec::new();
        for child in 0..=count {
            let checksum = u128_at(bytes, child.checked_mul(16)?.checked_add(8)?)?;
            let number = u64_at(bytes, child.checked_mul(8)?.checked_add(numbers)?)?;
            let end = (child < count).then(|| u32_at(bytes, child.checked_mul(4)?.checked_add(ends)?)).flatten();
            let end = end.and_then(|end| usize::try_from(end).ok());
            let key = end.and_then(|end| bytes.get(start..end));
            start = end.unwrap_or(start);
            found.push((PageRef { number, checksum }, key));
        }
        Some(found)
    };
    match bytes.first() {
        Some(&BRANCH) => parse().unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// The entries of a leaf that are within it.
fn leaf_entries(bytes: &[u8]) -> Vec<(&[u8], &[u8])> {
    if bytes.first() != Some(&LEAF) {
        return Vec::new();
    }
    let Some(count) = u16_at(bytes, 2).map(usize::from) else { return Vec::new() };
    let end = |field: usize| {
        let at = field.checked_mul(4)?.checked_add(4)?;
        usize::try_from(u32_at(bytes, at)?).ok()
    };
    // Keys begin where the ends of values end, and values where the last key ends.
    let start_of = |field: usize| match field {
        0 => count.checked_mul(8)?.checked_add(4),
        field => end(field.checked_sub(1)?),
    };
    let slice = |field: usize| bytes.get(start_of(field)?..end(field)?);
    (0..count).filter_map(|entry| Some((slice(entry)?, slice(entry.checked_add(count)?)?))).collect()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u128_at(bytes: &[u8], at: usize) -> Option<u128> {
    Some(u128::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs};

    use super::*;
    use crate::index::{IndexKind, IndexOptions};

    fn options() -> IndexOptions {
        IndexOptions { kind: IndexKind::Redb, cache_bytes: 1 << 20, segment_bytes: 1 << 20 }
    }

    fn apply(dir: &Path, batch: Vec<(Bytes, Option<Bytes>)>) {
        let index = options().open(dir).unwrap();
        index.apply(batch).unwrap();
        index.sync().unwrap();
    }

    /// The offsets of the leaves of the current tree, in the order of their keys.
    fn leaves(file: &Path) -> Vec<usize> {
        let opened = File::open(file).unwrap();
        let (mut scan, header) = Scan::new(&opened);
        let root = scan.table(&header).unwrap().unwrap();
        let bytes = scan.bytes(root).unwrap();
        assert_eq!(bytes[0], BRANCH);
        children(&bytes).into_iter().map(|(leaf, _)| scan.geometry.place(leaf.number).unwrap().0 as usize).collect()
    }

    #[test]
    fn a_flipped_bit_of_the_tree_of_tables_is_found_although_it_can_be_repaired() {
        let dir = tempfile::tempdir().unwrap();
        apply(dir.path(), vec![(Bytes::from_static(b"key"), Some(Bytes::from_static(b"value")))]);
        let file = dir.path().join("index.redb");
        assert!(is_whole(&file).unwrap());
        let mut bytes = fs::read(&file).unwrap();
        let opened = File::open(&file).unwrap();
        let (scan, header) = Scan::new(&opened);
        let tables = newest_root(&header).unwrap();
        let place = scan.geometry.place(tables.number).unwrap().0 as usize;
        bytes[place + 20] ^= 1;
        fs::write(&file, bytes).unwrap();
        assert!(!is_whole(&file).unwrap());
        assert!(scan.verified(tables).is_some());
    }

    #[test]
    fn what_is_outside_of_lost_ranges_is_exact_after_changes_below_swapped_pages() {
        let original = tempfile::tempdir().unwrap();
        let entry = |number: u32| (Bytes::from(format!("lab/{number:04}")), Bytes::from(vec![7; 50]));
        let entries: BTreeMap<Bytes, Bytes> = (0..900).map(|number| entry(number * 2)).collect();
        apply(original.path(), entries.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect());
        let file = original.path().join("index.redb");
        assert!(is_whole(&file).unwrap());
        let (bytes, leaves) = (fs::read(&file).unwrap(), leaves(&file));
        let mut exact = 0;
        for (one, other) in [(2, 5), (2, 3), (3, 2), (1, 7), (6, 4)] {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("index.redb");
            let mut swapped = bytes.clone();
            (0..4096).for_each(|at| swapped.swap(leaves[one] + at, leaves[other] + at));
            fs::write(&file, swapped).unwrap();
            assert!(!is_whole(&file).unwrap());
            // Changed pages are copied with what they seem to have, and get new checksums.
            let first = (100 * one) as u32;
            let set = (first..first + 80).step_by(7).map(|number| entry(number * 2 + 1));
            let removed = (first + 20..first + 90).step_by(3).map(|number| entry(number * 2).0);
            let mut expected = entries.clone();
            expected.extend(set.clone());
            removed.clone().for_each(|key| drop(expected.remove(&key)));
            let set = set.map(|(key, value)| (key, Some(value)));
            apply(dir.path(), set.chain(removed.map(|key| (key, None))).collect());
            assert!(!is_whole(&file).unwrap());
            let mut found = scan(&file);
            let lost = std::mem::take(&mut found.lost);
            let is_outside = |key: &Bytes| !lost.iter().any(|range| range.contains(key));
            let current = found.entries.into_iter().filter(|entry| entry.current && is_outside(&entry.key));
            let current: BTreeMap<Bytes, Bytes> = current.map(|entry| (entry.key, entry.value)).collect();
            expected.retain(|key, _| is_outside(key));
            assert_eq!(current, expected, "{one} {other}");
            exact += current.len();
        }
        assert!(exact > 0, "all is lost");
    }
}
