//! The pages of a redb index, read without redb.
//!
//! A branch page has the checksum of each of its children, and a commit slot that of the root. So a page that agrees with
//! a checksum which was reached from the newest commit is the current one, whatever else is damaged. Where no such path is
//! left, all pages of the file are searched for entries.
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

use std::{collections::HashSet, fs::File, path::Path};

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
    let header = read_part(&file, 0, to_usize(PAGE)).bytes;
    let geometry = Geometry::of(&header);
    let mut scan = Scan { file: &file, geometry, visited: HashSet::new(), found: IndexPages::default() };
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

impl Scan<'_> {
    /// The root of the index's table: `None` if it cannot be found, `Some(None)` if the table is empty.
    fn table(&mut self, header: &[u8]) -> Option<Option<PageRef>> {
        let newest = SLOTS.into_iter().filter_map(|at| slot(header, at)).max_by_key(|(transaction, _)| *transaction);
        let mut next = vec![newest?.1?];
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
        let mut waiting = vec![Visit { page: root, bounds: (Bytes::new(), None) }];
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
        let (offset, len) = self.geometry.place(page.number)?;
        // A damaged parent may name anything.
        let file_len = self.file.metadata().ok()?.len();
        if offset.checked_add(len as u64)? > file_len {
            return None;
        }
        let mut bytes = read_part(self.file, offset, len).bytes;
        let is_valid = |bytes: &[u8]| {
            checked_end(bytes)
                .and_then(|end| bytes.get(..end))
                .is_some_and(|checked| xxh3_128(checked) == page.checksum)
        };
        (is_valid(&bytes) || repair_bit(&mut bytes, usize::MAX, is_valid)).then_some(bytes)
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
