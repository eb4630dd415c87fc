//! The pages of a sled index, read without sled.
//!
//! sled appends messages to segments of one file; the number of a message, its LSN, orders them. A message replaces a
//! page, changes one key of it (a link), or frees it. The newest replacement of a page with the links behind it is its
//! current state, unless a message behind it is damaged. Segments are reused, so the file has messages of earlier states.
//!
//! ```text
//! segment: checksum u32 (inverted), LSN and stable LSN i64 (exclusive or with 2^63 - 1), messages
//! message: checksum u32 (inverted), kind u8, length, number of the segment, page, body
//! node:    next, merging child, merging u8, prefix length u8, lo, hi, kind u8, count, keys, values or pages
//! link:    kind u8 (0 set, 1 delete), key, value
//! ```
//!
//! Lengths and numbers have variable lengths; keys of a node are without the first bytes of `lo`, its prefix.

mod format;
mod positions;
mod tree;

use std::{fs::File, path::Path};

use self::{
    format::{MessageKind, SEGMENT_HEADER, header_at, message_at, segment_lsn},
    positions::Positions,
    tree::{Gap, Pages},
};
use super::pages::{IndexPages, LostRange, read_part, to_usize};
use crate::regular_file;

/// The sizes that a segment can have.
const SEGMENT_BYTES: std::ops::RangeInclusive<u64> = 1 << 10..=1 << 24;
/// The end of a segment in which no message begins.
const NO_MESSAGE: usize = 32;

/// The bytes of a segment that are read to find out its LSN.
const SEGMENT_START: usize = 32 << 10;

/// A segment of the file.
struct Segment {
    lsn: u64,
    offset: u64,
}

/// Reads the pages of an index.
pub(super) fn scan(dir: &Path) -> IndexPages {
    let opened = regular_file::open(&dir.join("db")).and_then(|file| Ok((file.metadata()?.len(), file)));
    let (len, file) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            return IndexPages { lost: vec![LostRange::all(format!("index: {error}"))], ..IndexPages::default() };
        }
    };
    let conf = regular_file::read(&dir.join("conf")).ok().and_then(|conf| segment_bytes(&conf));
    let sizes = conf.into_iter().chain((10..=24).rev().map(|exponent| 1 << exponent));
    let Some(size) = sizes.into_iter().find(|size| begins_at(&file, len, *size)) else {
        return IndexPages { lost: vec![LostRange::all("index: no segment can be read")], ..IndexPages::default() };
    };
    let (found, unknown) = segments(&file, len, size);
    let read = |positions| read_segments(&file, &found, unknown, size, positions);
    let pages = read(Positions::read(dir));
    if pages.agree_with_positions() { pages.into_index() } else { read(None).into_index() }
}

/// True if the file has segments of this size: its first one, or another one, has a sound header or message.
fn begins_at(file: &File, len: u64, size: u64) -> bool {
    let starts =
        (0..len).step_by(to_usize(size)).map(|offset| read_part(file, offset, SEGMENT_START.min(to_usize(size))).bytes);
    let lsns = starts.map(|start| segment_lsn(&start).or_else(|| lsn_of_messages(&start, size)));
    let mut found = lsns.flatten().filter(|lsn| lsn % size == 0).take(2);
    // All sizes have a segment at 0, but only the right one has another at its end.
    found.next().is_some() && (len <= size || found.next().is_some())
}

/// The size of a segment according to sled's settings.
fn segment_bytes(conf: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(conf);
    let size = text.lines().find_map(|line| line.strip_prefix("segment_size: "))?.parse().ok()?;
    (SEGMENT_BYTES.contains(&size) && u64::is_power_of_two(size)).then_some(size)
}

/// The segments of a file in the order of their LSNs, and whether others cannot be placed.
fn segments(file: &File, len: u64, size: u64) -> (Vec<Segment>, bool) {
    let (mut found, mut unknown) = (Vec::new(), false);
    let mut offset = 0_u64;
    while offset < len {
        let start = read_part(file, offset, SEGMENT_START.min(to_usize(size))).bytes;
        match segment_lsn(&start).or_else(|| lsn_of_messages(&start, size)) {
            Some(lsn) if lsn % size == 0 => found.push(Segment { lsn, offset }),
            // A free segment is filled with zeros.
            None if start.iter().all(|byte| *byte == 0) => {}
            _ => unknown = true,
        }
        offset = offset.saturating_add(size);
    }
    found.sort_by_key(|segment| segment.lsn);
    (found, unknown)
}

/// The LSN of a segment whose header is damaged, from its messages.
fn lsn_of_messages(start: &[u8], size: u64) -> Option<u64> {
    let from = SEGMENT_HEADER.min(start.len());
    (from..start.len())
        .find_map(|at| message_at(start, at, None))
        .and_then(|message| message.header.segment.checked_mul(size))
}

fn read_segments(file: &File, segments: &[Segment], unknown: bool, size: u64, positions: Option<Positions>) -> Pages {
    let mut pages = Pages::new(positions);
    if unknown {
        pages.gaps.push(Gap::ANYWHERE);
    }
    let last = segments.last().map_or(0, |segment| segment.lsn);
    let mut previous: Option<u64> = None;
    for segment in segments {
        if previous == Some(segment.lsn) {
            // One of two segments with the same LSN is a copy at another place.
            pages.gaps.push(Gap::ANYWHERE);
        }
        if previous.is_some_and(|previous| previous.saturating_add(size) < segment.lsn) {
            pages.missing_before = segment.lsn;
        }
        previous = Some(segment.lsn);
        let mut bytes = read_part(file, segment.offset, to_usize(size)).bytes;
        let place = Place { lsn: segment.lsn, number: segment.lsn.checked_div(size), is_last: segment.lsn == last };
        read_messages(&mut bytes, place, &mut pages);
    }
    pages
}

/// The place of a segment in the log.
#[derive(Clone, Copy)]
struct Place {
    lsn: u64,
    number: Option<u64>,
    is_last: bool,
}

impl Place {
    /// The damaged part between an LSN and an offset in a segment of `segment_bytes` bytes.
    fn gap(&self, lsn: u64, end: usize, segment_bytes: usize, page: Option<u64>) -> Gap {
        let end = self.lsn.saturating_add(end as u64);
        // Bytes of another part of the segment may have got here, with sound messages, if more than one message is damaged.
        let doubtful_until = if page.is_some() { end } else { self.lsn.saturating_add(segment_bytes as u64) };
        Gap { lsn, end, doubtful_until, page }
    }
}

/// Reads the messages of a segment, and repairs or notes those that are damaged.
fn read_messages(bytes: &mut [u8], place: Place, pages: &mut Pages) {
    let mut at = SEGMENT_HEADER;
    while at.saturating_add(NO_MESSAGE) <= bytes.len() {
        let lsn = place.lsn.saturating_add(at as u64);
        if message_at(bytes, at, place.number).is_none() && !repair_at(bytes, at, place.number) {
            match skip_damaged(bytes, at, place, pages) {
                Some(next) => at = next,
                None => return,
            }
            continue;
        }
        let Some(message) = message_at(bytes, at, place.number) else { return };
        at = message.header.end;
        if message.header.kind == MessageKind::Cap {
            if at.saturating_add(NO_MESSAGE) > bytes.len() {
                return;
            }
            // It is the end of a segment, and got here from there.
            pages.gaps.push(place.gap(lsn, at, bytes.len(), None));
            continue;
        }
        pages.apply(lsn, place.lsn.saturating_add(at as u64), &message);
    }
}

/// Notes the damaged message at an offset. Returns the offset of the next message, `None` if none follows.
fn skip_damaged(bytes: &[u8], at: usize, place: Place, pages: &mut Pages) -> Option<usize> {
    let lsn = place.lsn.saturating_add(at as u64);
    let next = (at.saturating_add(1)..bytes.len()).find(|next| message_at(bytes, *next, place.number).is_some());
    if next.is_none() && place.is_last {
        // Behind the newest message are zeros, or what the segment had before. If messages were lost there, what is left
        // is an earlier state, as its metadata entry says.
        return None;
    }
    let header = header_at(bytes, at).filter(|header| Some(header.end) == next && Some(header.segment) == place.number);
    let body = header.and_then(|header| bytes.get(header.start..header.end)).unwrap_or_default();
    // The number of the page may be damaged too.
    let header = header.filter(|header| pages.has_changed(lsn, bytes, at, header));
    let end = next.unwrap_or(bytes.len());
    pages.gaps.push(place.gap(lsn, end, bytes.len(), header.map(|header| header.page)));
    if let Some(header) = header {
        pages.add_damaged(lsn, header.page, header.kind, body);
    }
    next
}

/// Repairs the one flipped bit of the message at an offset. Returns false if that is not its damage.
fn repair_at(bytes: &mut [u8], at: usize, number: Option<u64>) -> bool {
    let Some(end) = bytes.len().checked_sub(at).map(|rest| at.saturating_add(rest.min(NO_MESSAGE))) else {
        return false;
    };
    let is_valid = |bytes: &[u8]| message_at(bytes, at, number).is_some();
    if bytes.get(at..end).is_none_or(|head| head.iter().all(|byte| *byte == 0)) {
        return false;
    }
    if let Some(header) = header_at(bytes, at)
        && let Some(bit) = format::flipped_bit(bytes, at, &header)
    {
        format::flip(bytes, bit);
        if is_valid(bytes) {
            return true;
        }
        format::flip(bytes, bit);
    }
    // A bit of the length or of the number of the segment.
    for bit in at.saturating_mul(8)..end.saturating_mul(8) {
        format::flip(bytes, bit);
        if is_valid(bytes) {
            return true;
        }
        format::flip(bytes, bit);
    }
    false
}

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        fs,
        os::unix::fs::FileExt,
    };

    use bytes::Bytes;
    use rand::{RngExt, SeedableRng, rngs::StdRng};

    use super::*;
    use crate::{
        IndexKind,
        index::{Index, IndexOptions, PAGE_POSITIONS},
        index_pages::save_positions,
    };

    /// The key whose value is the number of the last batch.
    const LAST: &[u8] = b"\0last";

    type Entries = BTreeMap<Bytes, Bytes>;

    /// An index, and what it had after each batch.
    struct Written {
        dir: tempfile::TempDir,
        random: StdRng,
        states: Vec<Entries>,
    }

    impl Written {
        fn new(seed: u64) -> Self {
            let states = vec![Entries::new()];
            Self { dir: tempfile::tempdir().unwrap(), random: StdRng::seed_from_u64(seed), states }
        }

        fn open(&self) -> Box<dyn Index> {
            IndexOptions { kind: IndexKind::Sled, cache_bytes: 1 << 20, segment_bytes: 1 << 16 }
                .open(self.dir.path())
                .unwrap()
        }

        /// Applies batches that set more keys than they remove, and later ones that remove more.
        fn change(&mut self, index: &dyn Index, batches: usize, set: f64) {
            for _ in 0..batches {
                let mut state = self.states.last().unwrap().clone();
                let mut batch = BTreeMap::from([(LAST.into(), Some(self.states.len().to_string().into()))]);
                let start = self.random.random_range(0..4000);
                for number in 0..self.random.random_range(1..60) {
                    let key = Bytes::from(format!("lab/array/c/{:05}", start + number * 3));
                    let value = vec![self.random.random(); self.random.random_range(10..90)];
                    batch.insert(key, self.random.random_bool(set).then(|| Bytes::from(value)));
                }
                for (key, value) in &batch {
                    match value {
                        Some(value) => drop(state.insert(key.clone(), value.clone())),
                        None => drop(state.remove(key)),
                    }
                }
                self.states.push(state);
                index.apply(batch.into_iter().collect()).unwrap();
            }
            index.sync().unwrap();
        }

        /// The share of entries that are certain. Fails if one of them is wrong, or if one is missing silently.
        fn check(&self, place: &str) -> f64 {
            let found = scan(self.dir.path());
            let current = found.entries.into_iter().filter(|entry| entry.current);
            let certain: Entries = current.map(|entry| (entry.key, entry.value)).collect();
            let last = certain.get(LAST).map(|last| String::from_utf8_lossy(last).parse::<usize>().unwrap());
            // Without it nothing says which state it is.
            let Some(last) = last else { return 0.0 };
            let expected = &self.states[last];
            let wrong: Vec<_> = certain.iter().filter(|(key, value)| expected.get(*key) != Some(value)).collect();
            assert!(wrong.is_empty(), "{place}, state {last} of {}: {wrong:?}", self.states.len() - 1);
            let missing: BTreeSet<_> = expected.keys().filter(|key| !certain.contains_key(*key)).collect();
            let mut silent = missing.iter().filter(|key| !found.lost.iter().any(|range| range.contains(key)));
            assert!(found.is_uncertain || silent.next().is_none(), "{place}: {missing:?} {:?}", found.lost);
            if last + 1 < self.states.len() { 0.0 } else { certain.len() as f64 / expected.len() as f64 }
        }

        /// The shares of certain entries with each page of the log overwritten, in ascending order.
        fn shares_with_overwritten_pages(&self) -> Vec<f64> {
            let file = File::options().read(true).write(true).open(self.dir.path().join("db")).unwrap();
            let mut shares = Vec::new();
            for offset in (0..file.metadata().unwrap().len()).step_by(4096) {
                let bytes = read_part(&file, offset, 4096).bytes;
                file.write_all_at(&[0x5A; 4096], offset).unwrap();
                shares.push(self.check(&format!("page at {offset}")));
                file.write_all_at(&bytes, offset).unwrap();
            }
            shares.sort_by(f64::total_cmp);
            shares
        }
    }

    #[test]
    fn overwritten_page_of_a_closed_index_costs_what_is_on_it() {
        let mut written = Written::new(1);
        for set in [0.8, 0.3, 0.9] {
            let index = written.open();
            written.change(&*index, 60, set);
            save_positions(&*index, written.dir.path()).unwrap();
        }
        let with = written.shares_with_overwritten_pages();
        fs::remove_file(written.dir.path().join(PAGE_POSITIONS)).unwrap();
        let without = written.shares_with_overwritten_pages();
        // A page with the newest state of `LAST` costs everything, with and without.
        let mostly_certain = |shares: &[f64]| shares.iter().filter(|share| **share > 0.9).count();
        assert!(mostly_certain(&with) > with.len() * 4 / 5, "{with:?}");
        assert!(mostly_certain(&without) < mostly_certain(&with), "{without:?}");
    }

    #[test]
    fn nothing_certain_is_wrong_and_nothing_is_missing_silently_after_random_damages() {
        for seed in 0..4 {
            let mut written = Written::new(seed);
            for set in [0.9, 0.4, 0.7] {
                let index = written.open();
                let batches = written.random.random_range(1..100);
                written.change(&*index, batches, set);
                if written.random.random_bool(0.5) {
                    save_positions(&*index, written.dir.path()).unwrap();
                }
                // Nothing is known of where these are until the index is opened.
                let later = written.random.random_range(0..4);
                written.change(&*index, later, set);
            }
            for round in 0..40 {
                let file = File::options().read(true).write(true).open(written.dir.path().join("db")).unwrap();
                let mut before = Vec::new();
                for _ in 0..written.random.random_range(1..4) {
                    before.push(damage(&file, &mut written.random));
                }
                written.check(&format!("seed {seed}, round {round}"));
                for (at, bytes) in before.into_iter().rev() {
                    file.write_all_at(&bytes, at).unwrap();
                }
            }
        }
    }

    /// Damages a part of a file. Returns its offset and what was there.
    fn damage(file: &File, random: &mut StdRng) -> (u64, Vec<u8>) {
        let file_len = file.metadata().unwrap().len();
        let len = [1_u64, 512, 4096, 20_000][random.random_range(0..4)].min(file_len / 2);
        let place = |random: &mut StdRng| random.random_range(0..file_len - len) / len * len;
        let at = place(random);
        let before = read_part(file, at, to_usize(len)).bytes;
        let mut bytes = before.clone();
        match random.random_range(0..4) {
            0 => bytes.fill(0),
            1 => random.fill(&mut bytes[..]),
            2 => bytes[0] ^= 4,
            _ => bytes = read_part(file, place(random), to_usize(len)).bytes,
        }
        file.write_all_at(&bytes, at).unwrap();
        (at, before)
    }
}
