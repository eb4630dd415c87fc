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
mod tree;

use std::{fs::File, path::Path};

use self::{
    format::{MessageKind, SEGMENT_HEADER, header_at, message_at, segment_lsn},
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
    read_segments(&file, &found, unknown, size)
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

fn read_segments(file: &File, segments: &[Segment], unknown: bool, size: u64) -> IndexPages {
    let mut pages = Pages::default();
    if unknown {
        pages.gaps.push(Gap { lsn: u64::MAX, page: None });
    }
    let last = segments.last().map_or(0, |segment| segment.lsn);
    let mut previous: Option<u64> = None;
    for segment in segments {
        if previous == Some(segment.lsn) {
            // One of two segments with the same LSN is a copy at another place.
            pages.gaps.push(Gap { lsn: u64::MAX, page: None });
        }
        if previous.is_some_and(|previous| previous.saturating_add(size) < segment.lsn) {
            pages.missing_before = segment.lsn;
        }
        previous = Some(segment.lsn);
        let mut bytes = read_part(file, segment.offset, to_usize(size)).bytes;
        let place = Place { lsn: segment.lsn, number: segment.lsn.checked_div(size), is_last: segment.lsn == last };
        read_messages(&mut bytes, place, &mut pages);
    }
    pages.into_index()
}

/// The place of a segment in the log.
#[derive(Clone, Copy)]
struct Place {
    lsn: u64,
    number: Option<u64>,
    is_last: bool,
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
        if message.header.kind == MessageKind::Cap {
            return;
        }
        at = message.header.end;
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
    let header = header.filter(|header| pages.has_changed(header.page, header.kind, body));
    pages.gaps.push(Gap { lsn, page: header.map(|header| header.page) });
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
