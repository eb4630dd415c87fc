//! Segments, messages, nodes and links of sled.

use std::sync::LazyLock;

/// The length of a segment's header, in bytes.
pub(super) const SEGMENT_HEADER: usize = 20;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    /// Nothing: it was canceled, or is of no interest here.
    Other,
    /// The end of a segment.
    Cap,
    /// The LSN of the last message of a batch, which is applied as a whole.
    Batch,
    Free,
    /// The roots of trees.
    Roots,
    Node,
    Link,
}

/// The header of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    checksum: u32,
    pub(super) kind: MessageKind,
    pub(super) segment: u64,
    pub(super) page: u64,
    /// The offset of the number of the page, the last one before the body.
    page_start: usize,
    /// The offset of the body.
    pub(super) start: usize,
    /// The offset of its end.
    pub(super) end: usize,
}

/// A message that agrees with its checksum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'b> {
    pub(super) header: Header,
    pub(super) body: &'b [u8],
}

/// A node of a tree.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) next: Option<u64>,
    /// True if it is to be merged into the one before it.
    pub(super) is_merging: bool,
    pub(super) low: Vec<u8>,
    /// Empty for the last node of its level.
    pub(super) high: Vec<u8>,
    pub(super) prefix: usize,
    pub(super) data: Data,
}

/// The content of a node.
#[derive(Debug)]
pub(super) enum Data {
    /// Keys without their common prefix, and values.
    Leaf(Vec<(Vec<u8>, Vec<u8>)>),
    /// The children.
    Index(Vec<u64>),
}

/// A change of one key of a node.
#[derive(Debug)]
pub(super) enum Link {
    Set(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    /// Part of the merge of two nodes.
    Merge,
}

/// The LSN in the header of a segment.
pub(super) fn segment_lsn(bytes: &[u8]) -> Option<u64> {
    let checksum = u32::from_le_bytes(*bytes.first_chunk()?) ^ u32::MAX;
    let fields = bytes.get(4..SEGMENT_HEADER)?;
    let lsn = u64::from_le_bytes(*fields.first_chunk()?) ^ i64::MAX.cast_unsigned();
    (crc32(&[fields]) == checksum && i64::try_from(lsn).is_ok()).then_some(lsn)
}

/// The header of the message at an offset, if its body is within the bytes.
pub(super) fn header_at(bytes: &[u8], at: usize) -> Option<Header> {
    let mut rest = bytes.get(at..)?;
    let checksum = u32::from_le_bytes(*take(&mut rest, 4)?.first_chunk()?);
    let kind = match take(&mut rest, 1)?.first()? {
        1 | 5 | 7 | 9 | 11 => MessageKind::Other,
        2 => MessageKind::Cap,
        3 => MessageKind::Batch,
        4 => MessageKind::Free,
        6 => MessageKind::Roots,
        8 => MessageKind::Node,
        10 => MessageKind::Link,
        _ => return None,
    };
    let (len, segment) = (number(&mut rest)?, number(&mut rest)?);
    let page_start = bytes.len().checked_sub(rest.len())?;
    let page = number(&mut rest)?;
    let start = bytes.len().checked_sub(rest.len())?;
    let end = start.checked_add(usize::try_from(len).ok()?).filter(|end| *end <= bytes.len())?;
    Some(Header { checksum, kind, segment, page, page_start, start, end })
}

/// The message at an offset, if it is of this segment and agrees with its checksum.
pub(super) fn message_at(bytes: &[u8], at: usize, segment: Option<u64>) -> Option<Message<'_>> {
    let header = header_at(bytes, at).filter(|header| segment.is_none_or(|segment| header.segment == segment))?;
    let fields = bytes.get(at.checked_add(4)?..header.start)?;
    let body = bytes.get(header.start..header.end)?;
    (crc32(&[body, fields]) ^ u32::MAX == header.checksum).then_some(Message { header, body })
}

/// The bit, counted from the start of `bytes`, whose flipping makes the message at an offset agree with its checksum, if
/// its lengths are right. Flipping a bit changes a checksum in the same way whatever the other bits are.
pub(super) fn flipped_bit(bytes: &[u8], at: usize, header: &Header) -> Option<usize> {
    let fields_start = at.checked_add(4)?;
    let (fields, body) = (bytes.get(fields_start..header.start)?, bytes.get(header.start..header.end)?);
    let difference = crc32(&[body, fields]) ^ u32::MAX ^ header.checksum;
    if difference.count_ones() == 1 {
        return at.checked_mul(8)?.checked_add(usize::try_from(difference.trailing_zeros()).ok()?);
    }
    let positions = (fields_start..header.start).rev().chain((header.start..header.end).rev());
    let mut changes: [u32; 8] = std::array::from_fn(|bit| table(1 << bit));
    for position in positions {
        if let Some(bit) = changes.iter().position(|change| *change == difference) {
            return position.checked_mul(8)?.checked_add(bit);
        }
        changes = changes.map(|change| add(change, &0));
    }
    None
}

/// True if the number of another page makes the message at an offset agree with its checksum.
pub(super) fn is_of_other(bytes: &[u8], at: usize, header: &Header, mut pages: impl Iterator<Item = u64>) -> bool {
    let fields = at.checked_add(4).and_then(|start| bytes.get(start..header.page_start));
    let (Some(fields), Some(body)) = (fields, bytes.get(header.start..header.end)) else { return false };
    let before = crc32(&[body, fields]) ^ u32::MAX;
    let len = header.start.saturating_sub(header.page_start);
    pages.any(|page| {
        let number = number_bytes(page);
        number.len() == len && number.iter().fold(before, add) == header.checksum
    })
}

/// Flips a bit, counted from the start.
pub(super) fn flip(bytes: &mut [u8], bit: usize) {
    if let Some(byte) = bytes.get_mut(bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
}

impl Node {
    /// Parses a node as far as it can be; `None` if not even its bounds can.
    pub(super) fn parse(mut bytes: &[u8]) -> Option<(Self, bool)> {
        let bytes = &mut bytes;
        let next = number(bytes)?;
        number(bytes)?;
        let is_merging = *take(bytes, 1)?.first()? != 0;
        let prefix = usize::from(*take(bytes, 1)?.first()?);
        let (low, high) = (text(bytes)?.to_vec(), text(bytes)?.to_vec());
        let kind = *take(bytes, 1)?.first()?;
        let count = usize::try_from(number(bytes)?).ok()?;
        let (data, whole) = match kind {
            0 => {
                let keys = texts(bytes, count);
                let values = texts(bytes, count);
                let whole = keys.len() == count && values.len() == count;
                (Data::Leaf(keys.into_iter().zip(values).collect()), whole)
            }
            1 => {
                let keys = texts(bytes, count);
                let mut children = Vec::new();
                while children.len() < keys.len() {
                    let Some(child) = number(bytes) else { break };
                    children.push(child);
                }
                let whole = children.len() == count;
                (Data::Index(children), whole)
            }
            _ => return None,
        };
        Some((Self { next: (next > 0).then_some(next), is_merging, low, high, prefix, data }, whole))
    }

    /// True if a key without the common prefix is within the bounds.
    pub(super) fn contains(&self, key: &[u8]) -> bool {
        let key = [self.key_prefix(), key].concat();
        self.low <= key && (self.high.is_empty() || key < self.high)
    }

    /// The common prefix of its keys.
    pub(super) fn key_prefix(&self) -> &[u8] {
        self.low.get(..self.prefix).unwrap_or_default()
    }
}

impl Link {
    pub(super) fn parse(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        Some(match take(bytes, 1)?.first()? {
            0 => Self::Set(text(bytes)?.to_vec(), text(bytes)?.to_vec()),
            1 => Self::Delete(text(bytes)?.to_vec()),
            2..=4 => Self::Merge,
            _ => return None,
        })
    }
}

impl Link {
    /// The key of a link whose bytes may be damaged, if the lengths in it fill it exactly.
    pub(super) fn key(mut bytes: &[u8]) -> Option<&[u8]> {
        let bytes = &mut bytes;
        let is_set = match take(bytes, 1)?.first()? {
            0 => true,
            1 => false,
            _ => return None,
        };
        let key = text(bytes)?;
        if is_set {
            text(bytes)?;
        }
        bytes.is_empty().then_some(key)
    }
}

/// The pages of roots by the names of trees.
pub(super) fn roots(mut bytes: &[u8]) -> Vec<(Vec<u8>, u64)> {
    let bytes = &mut bytes;
    let mut roots = Vec::new();
    while let Some(name) = text(bytes)
        && let Some(page) = number(bytes)
    {
        roots.push((name.to_vec(), page));
    }
    roots
}

fn texts(bytes: &mut &[u8], count: usize) -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    while texts.len() < count {
        let Some(text) = text(bytes) else { break };
        texts.push(text.to_vec());
    }
    texts
}

fn text<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let len = usize::try_from(number(bytes)?).ok()?;
    take(bytes, len)
}

/// Takes bytes from the front.
pub(super) fn take<'b>(bytes: &mut &'b [u8], len: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

/// A number of variable length.
pub(super) fn number(bytes: &mut &[u8]) -> Option<u64> {
    let first = *take(bytes, 1)?.first()?;
    match first {
        0..=240 => Some(first.into()),
        241..=248 => Some(240 + 256 * (u64::from(first) - 241) + u64::from(*take(bytes, 1)?.first()?)),
        249 => {
            let [high, low] = *take(bytes, 2)?.first_chunk()?;
            Some(2288 + 256 * u64::from(high) + u64::from(low))
        }
        250.. => {
            let mut number = [0; 8];
            let digits = take(bytes, usize::from(first) - 247)?;
            number.get_mut(..digits.len())?.copy_from_slice(digits);
            Some(u64::from_le_bytes(number))
        }
    }
}

/// A number as sled writes it.
fn number_bytes(number: u64) -> Vec<u8> {
    let bytes = |number: u64| number.to_le_bytes();
    match number {
        0..=240 => vec![bytes(number)[0]],
        241..=2287 => {
            let [low, high, ..] = bytes(number.saturating_sub(240));
            vec![high.saturating_add(241), low]
        }
        2288..=67_823 => {
            let [low, high, ..] = bytes(number.saturating_sub(2288));
            vec![249, high, low]
        }
        _ => {
            let zeros = bytes(number).iter().rev().take_while(|byte| **byte == 0).count();
            let digits = 8_usize.saturating_sub(zeros);
            let first = u8::try_from(digits).unwrap_or_default().saturating_add(247);
            [first].into_iter().chain(bytes(number).into_iter().take(digits)).collect()
        }
    }
}

/// CRC-32 of parts one after the other.
pub(super) fn crc32(parts: &[&[u8]]) -> u32 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(u32::MAX, add) ^ u32::MAX
}

/// Adds a byte to a CRC-32 without the inversions.
fn add(crc: u32, byte: &u8) -> u32 {
    table((crc ^ u32::from(*byte)) & 0xFF) ^ (crc >> 8)
}

/// The CRC-32 of one byte, without the inversions.
fn table(byte: u32) -> u32 {
    static TABLE: LazyLock<[u32; 256]> = LazyLock::new(|| {
        let step = |crc: u32, _| if crc & 1 == 1 { 0xEDB8_8320 ^ (crc >> 1) } else { crc >> 1 };
        let mut byte = 0..;
        std::array::from_fn(|_| (0..8).fold(byte.next().unwrap_or_default(), step))
    });
    usize::try_from(byte).ok().and_then(|byte| TABLE.get(byte)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_crc_32() {
        assert_eq!(crc32(&[b"1234", b"56789"]), 0xCBF4_3926);
    }

    #[test]
    fn numbers_are_written_as_they_are_read() {
        for number in (0..70_000).chain([1 << 24, (1 << 32) - 1, 1 << 40, u64::MAX]) {
            let bytes = number_bytes(number);
            let mut rest = bytes.as_slice();
            assert_eq!((super::number(&mut rest), rest.len()), (Some(number), 0), "{bytes:?}");
        }
    }

    #[test]
    fn damaged_number_of_a_page_is_found_if_it_was_one_of_the_others() {
        for (page, other) in [(36, 97), (300, 2000), (5000, 60_000), (100_000, 9_000_000)] {
            let message = |page: u64| [&[8, 5, 3][..], &number_bytes(page)].concat();
            let checksum = (crc32(&[b"hello", &message(page)]) ^ u32::MAX).to_le_bytes();
            let damaged = [&checksum[..], &message(other), b"hello"].concat();
            let header = header_at(&damaged, 0).unwrap();
            assert_eq!((header.page, header.end), (other, damaged.len()));
            assert!(is_of_other(&damaged, 0, &header, [1, 70_000, page].into_iter()));
            assert!(!is_of_other(&damaged, 0, &header, (0..1000).filter(|one| *one != page)));
        }
    }

    #[test]
    fn every_flipped_bit_of_a_message_is_found() {
        let (fields, body) = ([8, 5, 3, 7], b"hello");
        let mut sound = (crc32(&[body, &fields]) ^ u32::MAX).to_le_bytes().to_vec();
        sound.extend_from_slice(&fields);
        sound.extend_from_slice(body);
        assert_eq!(message_at(&sound, 0, Some(3)).unwrap().body, body);
        for bit in 0..sound.len() * 8 {
            let mut damaged = sound.clone();
            flip(&mut damaged, bit);
            assert!(message_at(&damaged, 0, Some(3)).is_none(), "{bit}");
            // With a wrong length, other bytes are taken for the body.
            if let Some(header) = header_at(&damaged, 0).filter(|header| header.end == sound.len()) {
                assert_eq!(flipped_bit(&damaged, 0, &header), Some(bit));
            }
        }
    }
}
