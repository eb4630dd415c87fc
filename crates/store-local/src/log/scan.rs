//! Reading a segment whose parts may be damaged.

use bytes::Bytes;

use super::{
    frame::{FRAME_HEADER, Operation, decode_frame, decode_payload, is_frame, is_frame_start, padded_len},
    segment::{HEADER_BYTES, Header},
};
use crate::{
    log_key::LogKey,
    repair::{MAX_REPAIRED_BYTES, repair_bit},
};

/// The readable parts of a segment.
pub(crate) struct ScannedSegment {
    /// The epoch and the first group; `None` if the header is damaged.
    pub(crate) header: Option<(u64, u64)>,
    /// True if the file is shorter than it was created.
    pub(crate) cut_short: bool,
    /// The groups of valid frames, with their operations.
    pub(crate) frames: Vec<(u64, Vec<Operation>)>,
    /// True if a frame is damaged: one between others, or one of which one bit was repaired.
    pub(crate) damaged: bool,
    /// True if a frame follows the last one that is not whole: of a commit that a crash interrupted, or of a damaged one.
    pub(crate) torn: bool,
}

/// Finds the valid frames of a segment. Those that a recycled segment had before are not valid.
pub(crate) fn scan_segment(key: LogKey, id: u64, bytes: Bytes) -> ScannedSegment {
    let header = read_header(key, id, &bytes);
    let size = header.as_ref().and_then(|(header, fields)| header.size_of(fields, key));
    let cut_short = size.is_some_and(|size| (bytes.len() as u64) < size);
    let mut found = ScannedSegment {
        header: header.map(|(header, _)| (header.epoch, header.first_group)),
        cut_short,
        frames: Vec::new(),
        damaged: false,
        torn: false,
    };
    let mut at = usize::try_from(HEADER_BYTES).unwrap_or(usize::MAX);
    let (mut skipped, mut end) = (false, at);
    while at < bytes.len() {
        let rest = bytes.slice(at..);
        // The first bytes of a frame behind others may be damaged.
        let frame = is_frame_start(&rest).then(|| decode_frame(key, id, &rest)).flatten();
        let is_sound = frame.is_some();
        let frame = frame.or_else(|| if skipped { None } else { repaired(key, id, &rest) });
        let decoded = frame.and_then(|(group, payload, len)| Some((group, decode_payload(payload)?, len)));
        match decoded {
            Some((group, operations, len)) => {
                found.damaged |= skipped || !is_sound;
                skipped = false;
                found.frames.push((group, operations));
                at = at.saturating_add(len);
                end = at;
            }
            None => {
                skipped = true;
                at = at.saturating_add(8);
            }
        }
    }
    let first = found.header.map_or(0, |(_, first)| first);
    let next = found.frames.last().map_or(first, |(group, _)| group.saturating_add(1));
    found.torn = is_torn(bytes.get(end..).unwrap_or_default(), first, next);
    found
}

/// True if the bytes behind the last frame were part of the frame of the next group. Behind it are zeros, or the earlier frames
/// of a recycled segment.
fn is_torn(rest: &[u8], first: u64, next: u64) -> bool {
    if rest.iter().all(|byte| *byte == 0) {
        return false;
    }
    let group = |bytes: &[u8]| bytes.get(8..16)?.first_chunk().map(|group| u64::from_be_bytes(*group));
    let is_earlier = |bytes: &[u8]| is_frame_start(bytes) && group(bytes).is_some_and(|group| group < first);
    let begins_next = group(rest).is_some_and(|group| group == next || is_frame_start(rest) && group > next);
    begins_next || !(0..rest.len()).step_by(8).any(|at| rest.get(at..).is_some_and(is_earlier))
}

/// The header of a segment, perhaps after a repair, and its bytes.
fn read_header(key: LogKey, id: u64, bytes: &Bytes) -> Option<(Header, Vec<u8>)> {
    let mut fields = bytes.get(..bytes.len().min(128))?.to_vec();
    let is_valid = |fields: &[u8]| Header::decode(fields, key).is_some_and(|header| header.id == id);
    if !is_valid(&fields) && !repair_bit(&mut fields, usize::MAX, is_valid) {
        return None;
    }
    Some((Header::decode(&fields, key)?, fields))
}

/// The frame at the start of the bytes with one bit repaired.
fn repaired(key: LogKey, id: u64, rest: &Bytes) -> Option<(u64, Bytes, usize)> {
    let is_valid = |bytes: &[u8]| is_frame(key, id, bytes);
    let mut bytes = rest.get(..rest.len().min(MAX_REPAIRED_BYTES))?.to_vec();
    if bytes.get(..FRAME_HEADER)?.iter().all(|byte| *byte == 0) {
        return None;
    }
    if let Some(len) = padded_len(&bytes).filter(|len| *len <= bytes.len()) {
        let mut frame = bytes.get(..len)?.to_vec();
        if repair_bit(&mut frame, usize::MAX, is_valid) {
            return decode_frame(key, id, &frame.into());
        }
    }
    // A bit of the header, which may be one of the length.
    if repair_bit(&mut bytes, FRAME_HEADER, is_valid) { decode_frame(key, id, &bytes.into()) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::frame::encode_frame;

    #[test]
    fn rest_of_the_next_frame_differs_from_zeros_and_earlier_frames() {
        let key = LogKey::new(7, 9);
        let frame = |group| encode_frame(key, 3, group, &[9; 200]).to_vec();
        let with_zeros = |mut bytes: Vec<u8>, at: std::ops::Range<usize>| {
            bytes[at].fill(0);
            bytes
        };
        let earlier = [vec![5; 40], frame(8), frame(9)].concat();
        let is_torn = |rest: &[u8]| super::is_torn(rest, 10, 12);
        assert!(!is_torn(&[0; 400]) && !is_torn(&[]) && !is_torn(&earlier));
        // A part of the next frame is missing, also in a segment that is used again.
        for missing in [100..224, 0..8, 0..100, 16..224] {
            let torn = with_zeros(frame(12), missing.clone());
            let over_earlier = [torn.clone(), earlier.clone()].concat();
            assert!(is_torn(&torn), "{missing:?}");
            assert_eq!(is_torn(&over_earlier), missing != (0..100), "{missing:?}");
        }
        assert!(is_torn(&[&frame(12)[..8], &[0xFF; 200]].concat()), "its group is damaged");
    }
}
