//! BloscLZ, blosc's own compressor: a descendant of FastLZ.
//!
//! A stream is a sequence of instructions. A control byte below 32 copies that many bytes plus one from the stream.
//! Otherwise, its upper three bits are the length of a match minus 2, where 7 is followed by bytes to add, up to and
//! including the first that is not 255; its lower five bits and the next byte are the distance minus 1. If these 13
//! bits are all set, two more bytes are the distance minus 8192, most significant byte first.
//!
//! The first instruction copies, and its upper bits are ignored. The last one copies as well, because newer decoders
//! expect bytes after a match.

use super::frame::NAME;
use crate::CodecError;

/// The maximum number of bytes that one instruction copies from the stream.
const MAX_COPY: usize = 32;

/// The minimum length of a match, and the maximum length that fits the control byte.
const MIN_MATCH: usize = 3;
const SHORT_MATCH: usize = 8;

/// The first distance that needs two more bytes, and the maximum distance.
const FAR_DISTANCE: usize = 8192;
const MAX_DISTANCE: usize = FAR_DISTANCE + 0xffff;

/// The minimum length of a match at a [`FAR_DISTANCE`], which takes at least four bytes.
const MIN_FAR_MATCH: usize = 6;

/// The number of bytes at the end that are always copied.
const LITERAL_TAIL_SIZE: usize = 12;

/// The base-two logarithm of the number of remembered positions.
const HASH_BITS: u32 = 14;

/// The flag that writers set in the first instruction.
const FIRST_INSTRUCTION_FLAG: u8 = 1 << 5;

/// Decodes a stream to exactly `decoded.len()` bytes.
pub(super) fn decompress(stream: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
    let mut input = stream.iter();
    let mut written = 0_usize;
    let mut control = input.next().map(|first| first & (FIRST_INSTRUCTION_FLAG - 1));
    while let Some(instruction) = control {
        let end = match usize::from(instruction) {
            last_literal if last_literal < MAX_COPY => {
                let (bytes, rest) = input.as_slice().split_at_checked(last_literal + 1).ok_or_else(truncated)?;
                let end = written + bytes.len();
                decoded.get_mut(written..end).ok_or_else(too_long)?.copy_from_slice(bytes);
                input = rest.iter();
                end
            }
            matched => {
                let mut next = || input.next().map(|byte| usize::from(*byte)).ok_or_else(truncated);
                let mut len = (matched >> 5) + MIN_MATCH - 1;
                if matched >> 5 == 7 {
                    loop {
                        let more = next()?;
                        len = len.checked_add(more).ok_or_else(too_long)?;
                        if more != 255 {
                            break;
                        }
                    }
                }
                let mut distance = ((matched & 31) << 8) + next()? + 1;
                if distance == FAR_DISTANCE {
                    distance += (next()? << 8) + next()?;
                }
                copy_match(decoded, written, distance, len)?
            }
        };
        written = end;
        control = input.next().copied();
    }
    let wrong = CodecError::Malformed { codec: NAME, reason: "a stream is shorter than its block" };
    if written == decoded.len() { Ok(()) } else { Err(wrong) }
}

/// Copies `len` bytes from `distance` bytes before `written` to there; the ranges may overlap. Returns the end.
fn copy_match(decoded: &mut [u8], written: usize, distance: usize, len: usize) -> Result<usize, CodecError> {
    let start = written
        .checked_sub(distance)
        .ok_or(CodecError::Malformed { codec: NAME, reason: "a match lies before its block" })?;
    let end = written.checked_add(len).filter(|&end| end <= decoded.len()).ok_or_else(too_long)?;
    if distance == 1 {
        let byte = decoded.get(start).copied().unwrap_or_default();
        decoded.get_mut(written..end).ok_or_else(too_long)?.fill(byte);
        return Ok(end);
    }
    // Each copy at least doubles the source.
    let mut to = written;
    while to < end {
        let len_copied = (to - start).min(end - to);
        decoded.copy_within(start..start + len_copied, to);
        to += len_copied;
    }
    Ok(end)
}

/// Compresses bytes; `None` if the result is not shorter.
pub(super) fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut output = Vec::with_capacity(bytes.len());
    let mut positions = vec![0_u32; 1 << HASH_BITS];
    let search_end = bytes.len().checked_sub(LITERAL_TAIL_SIZE)?;
    // The first bytes have nothing to match.
    let (mut literal_start, mut at) = (0, MIN_MATCH + 1);
    while at < search_end {
        let Some((distance, len)) = find_match(bytes, at, search_end, &mut positions) else {
            at += 1;
            continue;
        };
        write_literals(&mut output, bytes.get(literal_start..at)?);
        write_match(&mut output, distance, len);
        at += len;
        literal_start = at;
        if output.len() >= bytes.len() {
            return None;
        }
    }
    write_literals(&mut output, bytes.get(literal_start..)?);
    *output.first_mut()? |= FIRST_INSTRUCTION_FLAG;
    (output.len() < bytes.len()).then_some(output)
}

/// The distance and length of a match with the last position that has the same four bytes, if it is worth writing.
fn find_match(bytes: &[u8], at: usize, end: usize, positions: &mut [u32]) -> Option<(usize, usize)> {
    let four = u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
    let hash = four.wrapping_mul(0x9e37_79b1) >> (u32::BITS - HASH_BITS);
    let slot = positions.get_mut(usize::try_from(hash).ok()?)?;
    let before = usize::try_from(*slot).ok()?;
    *slot = u32::try_from(at).ok()?;
    let distance = at.checked_sub(before).filter(|distance| (1..=MAX_DISTANCE).contains(distance))?;
    let len = common_prefix_len(bytes.get(before..)?, bytes.get(at..end)?);
    let min_len = if distance < FAR_DISTANCE { MIN_MATCH + 1 } else { MIN_FAR_MATCH };
    (len >= min_len).then_some((distance, len))
}

/// The length of the common prefix of two slices.
fn common_prefix_len(first: &[u8], second: &[u8]) -> usize {
    let alike = std::iter::zip(first.as_chunks::<8>().0, second.as_chunks::<8>().0).take_while(|(a, b)| a == b);
    let word_bytes = alike.count() * 8;
    let rest = std::iter::zip(first.iter().skip(word_bytes), second.iter().skip(word_bytes));
    word_bytes + rest.take_while(|(a, b)| a == b).count()
}

fn write_literals(output: &mut Vec<u8>, bytes: &[u8]) {
    for bytes in bytes.chunks(MAX_COPY) {
        output.push((bytes.len() - 1) as u8);
        output.extend_from_slice(bytes);
    }
}

/// Writes a match.
fn write_match(output: &mut Vec<u8>, distance: usize, len: usize) {
    let near = (distance - 1).min(FAR_DISTANCE - 1);
    let upper = (near >> 8) as u8;
    if len <= SHORT_MATCH {
        output.push((((len + 1 - MIN_MATCH) << 5) as u8) | upper);
    } else {
        output.push((7 << 5) | upper);
        let mut more = len - SHORT_MATCH - 1;
        while more >= 255 {
            output.push(255);
            more -= 255;
        }
        output.push(more as u8);
    }
    output.push(near as u8);
    if distance >= FAR_DISTANCE {
        output.extend_from_slice(&((distance - FAR_DISTANCE) as u16).to_be_bytes());
    }
}

fn truncated() -> CodecError {
    CodecError::Malformed { codec: NAME, reason: "a stream ends too early" }
}

fn too_long() -> CodecError {
    CodecError::Malformed { codec: NAME, reason: "a stream is longer than its block" }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes that repeat with a period.
    fn periodic(len: usize, period: usize) -> Vec<u8> {
        let noise = |at: usize| (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17).wrapping_mul(31) as u8;
        (0..len).map(|at| noise(at % period)).collect()
    }

    #[test]
    fn every_kind_of_match_roundtrips() {
        for period in [1, 2, 3, 7, 31, 255, 256, 8190, 8191, 8192, 8193, 8194, 60000, MAX_DISTANCE, MAX_DISTANCE + 1] {
            for len in [64, 300, 20000, 3 * period + 100] {
                let bytes = periodic(len, period);
                let Some(stream) = compress(&bytes) else {
                    assert!(len < 2 * period + 100 || period > MAX_DISTANCE || len < 100, "{period} {len}");
                    continue;
                };
                let mut decoded = vec![0; len];
                decompress(&stream, &mut decoded).unwrap();
                assert!(decoded == bytes, "{period} {len}");
            }
        }
    }

    #[test]
    fn malformed_streams_are_rejected() {
        let mut decoded = [0; 64];
        let cases: [(&[u8], &str); 6] = [
            (&[], "nothing"),
            (&[31, 1, 2], "fewer bytes than it copies"),
            (&[0, 9, 0x20, 5], "a match before the block"),
            (&[0, 9, 0xe0, 255, 255, 0, 0], "a match beyond the block"),
            (&[0, 9, 0xe0, 255], "a length without an end"),
            (&[0, 9, 0x3f, 255, 0], "half a distance"),
        ];
        for (stream, lie) in cases {
            assert!(decompress(stream, &mut decoded).is_err(), "{lie}");
        }
        decompress(&[0, 9, 0xe0, 53, 0, 0, 7], &mut decoded).unwrap();
        assert_eq!((decoded[0], decoded[62], decoded[63]), (9, 9, 7));
    }

    proptest! {
        #[test]
        fn compressed_bytes_roundtrip(bytes in prop::collection::vec(0..4_u8, 0..3000)) {
            if let Some(stream) = compress(&bytes) {
                let mut decoded = vec![0; bytes.len()];
                decompress(&stream, &mut decoded).unwrap();
                prop_assert_eq!(decoded, bytes);
            }
        }

        #[test]
        fn random_streams_never_panic(stream in prop::collection::vec(any::<u8>(), 0..300), len in 0..2000_usize) {
            let _ = decompress(&stream, &mut vec![0; len]);
        }
    }
}
