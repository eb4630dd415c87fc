//! Frames: commit groups in the log.
//!
//! ```text
//! magic u32, payload length u32, group u64, checksum u64, payload, zeros up to a multiple of 8 bytes
//! payload: operations, each
//!   kind u8, number u64, key length u16, value length u32, key, value
//! ```
//!
//! Numbers are big-endian. The checksum is seeded with a secret of the store and the id of the segment, so that neither
//! the former content of a recycled segment nor any value that a client sends is a valid frame.

use bytes::{BufMut, Bytes, BytesMut};
use zarrd_store::{IntentId, Key, Prefix};

use super::bytes_reader::BytesReader;
use crate::log_key::LogKey;

/// The length of the fields before a frame's payload, in bytes.
pub(super) const FRAME_HEADER: usize = 24;
const MAGIC: u32 = 0x5A41_4652;

/// A change in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Sets a key to a record.
    Set { key: Key, number: u64, record: Bytes },
    /// Erases a key.
    Erase { key: Key, number: u64 },
    /// Erases all keys below a prefix.
    ErasePrefix { prefix: Prefix, number: u64 },
    /// A bulk commit, whose changes are in a file. `number` precedes that of its first change.
    Bulk { id: u64, number: u64, entries: u32, checksum: u64 },
    /// Adds an intent with this record, or removes it.
    Intent { id: IntentId, number: u64, record: Option<Bytes> },
}

const SET: u8 = 1;
const ERASE: u8 = 2;
const ERASE_PREFIX: u8 = 3;
const BULK: u8 = 4;
const ADD_INTENT: u8 = 5;
const REMOVE_INTENT: u8 = 6;

impl Operation {
    /// Appends the operation to a payload.
    pub(crate) fn encode(&self, payload: &mut BytesMut) {
        let mut put = |kind: u8, number: u64, key: &[u8], value: &[u8]| {
            payload.put_u8(kind);
            payload.put_u64(number);
            payload.put_u16(u16::try_from(key.len()).unwrap_or(u16::MAX));
            payload.put_u32(u32::try_from(value.len()).unwrap_or(u32::MAX));
            payload.put_slice(key);
            payload.put_slice(value);
        };
        match self {
            Self::Set { key, number, record } => put(SET, *number, key.as_bytes(), record),
            Self::Erase { key, number } => put(ERASE, *number, key.as_bytes(), b""),
            Self::ErasePrefix { prefix, number } => put(ERASE_PREFIX, *number, prefix.as_bytes(), b""),
            Self::Bulk { id, number, entries, checksum } => {
                let mut value = BytesMut::with_capacity(20);
                value.put_u64(*id);
                value.put_u32(*entries);
                value.put_u64(*checksum);
                put(BULK, *number, b"", &value);
            }
            Self::Intent { id, number, record: Some(record) } => {
                put(ADD_INTENT, *number, &id.as_u128().to_be_bytes(), record);
            }
            Self::Intent { id, number, record: None } => put(REMOVE_INTENT, *number, &id.as_u128().to_be_bytes(), b""),
        }
    }

    /// The length of the operation in a payload, in bytes.
    pub(crate) fn encoded_len(&self) -> usize {
        const FIXED: usize = 15;
        match self {
            Self::Set { key, record, .. } => FIXED.saturating_add(key.as_bytes().len()).saturating_add(record.len()),
            Self::Erase { key, .. } => FIXED.saturating_add(key.as_bytes().len()),
            Self::ErasePrefix { prefix, .. } => FIXED.saturating_add(prefix.as_bytes().len()),
            Self::Bulk { .. } => FIXED.saturating_add(20),
            Self::Intent { record, .. } => {
                FIXED.saturating_add(16).saturating_add(record.as_ref().map_or(0, Bytes::len))
            }
        }
    }

    fn decode(reader: &mut BytesReader) -> Option<Self> {
        let (kind, number) = (reader.u8()?, reader.u64()?);
        let (key_len, value_len) = (reader.u16()?, reader.u32()?);
        let key = reader.take(key_len.into())?;
        let value = reader.take(usize::try_from(value_len).ok()?)?;
        Some(match kind {
            SET => Self::Set { key: Key::from_stored(&key).ok()?, number, record: value },
            ERASE => Self::Erase { key: Key::from_stored(&key).ok()?, number },
            ERASE_PREFIX => Self::ErasePrefix { prefix: Prefix::from_stored(&key).ok()?, number },
            BULK => {
                let mut value = BytesReader(value);
                Self::Bulk { id: value.u64()?, number, entries: value.u32()?, checksum: value.u64()? }
            }
            ADD_INTENT => Self::Intent { id: intent_id(&key)?, number, record: Some(value) },
            REMOVE_INTENT => Self::Intent { id: intent_id(&key)?, number, record: None },
            _ => return None,
        })
    }
}

fn intent_id(key: &[u8]) -> Option<IntentId> {
    Some(IntentId::from_u128(u128::from_be_bytes(key.try_into().ok()?)))
}

/// The operations of a payload; `None` if it is malformed.
pub(super) fn decode_payload(payload: Bytes) -> Option<Vec<Operation>> {
    let mut reader = BytesReader(payload);
    let mut operations = Vec::new();
    while !reader.0.is_empty() {
        operations.push(Operation::decode(&mut reader)?);
    }
    Some(operations)
}

/// The frame of a group in a segment.
pub(super) fn encode_frame(key: LogKey, segment: u64, group: u64, payload: &[u8]) -> BytesMut {
    let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let mut frame = BytesMut::with_capacity(FRAME_HEADER.saturating_add(payload.len()).saturating_add(8));
    frame.put_u32(MAGIC);
    frame.put_u32(len);
    frame.put_u64(group);
    frame.put_u64(checksum(key, segment, len, group, payload));
    frame.put_slice(payload);
    frame.resize(frame.len().next_multiple_of(8), 0);
    frame
}

/// True if a frame may begin here; a cheap check.
pub(super) fn is_frame_start(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC.to_be_bytes())
}

/// The padded length of the frame that seems to be at the start of `bytes`; `None` if none does.
pub(super) fn padded_len(bytes: &[u8]) -> Option<usize> {
    let len = bytes.strip_prefix(&MAGIC.to_be_bytes())?.first_chunk().map(|len| u32::from_be_bytes(*len))?;
    FRAME_HEADER.checked_add(usize::try_from(len).ok()?)?.checked_next_multiple_of(8)
}

/// True if a valid frame is at the start of `bytes`.
pub(super) fn is_frame(key: LogKey, segment: u64, bytes: &[u8]) -> bool {
    let check = || {
        let (header, rest) = bytes.split_first_chunk::<FRAME_HEADER>()?;
        let (len, fields) = header.strip_prefix(&MAGIC.to_be_bytes())?.split_first_chunk::<4>()?;
        let (group, sum) = fields.split_first_chunk::<8>()?;
        let len = u32::from_be_bytes(*len);
        let payload = rest.get(..usize::try_from(len).ok()?)?;
        let sum = u64::from_be_bytes(*sum.first_chunk()?);
        Some(sum == checksum(key, segment, len, u64::from_be_bytes(*group), payload))
    };
    check().unwrap_or_default()
}

/// Decodes the frame at the beginning of `bytes`: its group, payload, and padded length. `None` if it is not valid.
pub(super) fn decode_frame(key: LogKey, segment: u64, bytes: &Bytes) -> Option<(u64, Bytes, usize)> {
    let mut reader = BytesReader(bytes.clone());
    if reader.u32()? != MAGIC {
        return None;
    }
    let (len, group, sum) = (reader.u32()?, reader.u64()?, reader.u64()?);
    let payload = reader.take(usize::try_from(len).ok()?)?;
    if sum != checksum(key, segment, len, group, &payload) {
        return None;
    }
    let total = FRAME_HEADER.saturating_add(payload.len()).next_multiple_of(8);
    Some((group, payload, total))
}

fn checksum(key: LogKey, segment: u64, len: u32, group: u64, payload: &[u8]) -> u64 {
    key.checksum(segment, &[&len.to_be_bytes(), &group.to_be_bytes(), payload])
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: LogKey = LogKey::new(1, 2);

    fn operations() -> Vec<Operation> {
        let key = || Key::parse("a/b").unwrap();
        vec![
            Operation::Set { key: key(), number: 7, record: Bytes::from_static(b"record") },
            Operation::Erase { key: key(), number: 8 },
            Operation::ErasePrefix { prefix: Prefix::root(), number: 9 },
            Operation::Bulk { id: 3, number: 10, entries: 5, checksum: 6 },
            Operation::Intent { id: IntentId::from_u128(12), number: 13, record: Some(Bytes::from_static(b"intent")) },
            Operation::Intent { id: IntentId::from_u128(12), number: 14, record: None },
        ]
    }

    #[test]
    fn frames_round_trip_and_detect_every_damage() {
        let mut payload = BytesMut::new();
        let operations = operations();
        operations.iter().for_each(|operation| operation.encode(&mut payload));
        assert_eq!(payload.len(), operations.iter().map(Operation::encoded_len).sum::<usize>());
        let frame = encode_frame(KEY, 4, 11, &payload).freeze();
        let (group, read, len) = decode_frame(KEY, 4, &frame).unwrap();
        assert_eq!((group, len), (11, frame.len()));
        assert_eq!(decode_payload(read).unwrap(), operations);
        assert_eq!(decode_frame(KEY, 5, &frame), None);
        assert_eq!(decode_frame(LogKey::new(1, 3), 4, &frame), None);
        let meaningful = FRAME_HEADER + payload.len();
        for bit in 0..meaningful * 8 {
            let mut damaged = BytesMut::from(&frame[..]);
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode_frame(KEY, 4, &damaged.freeze()), None, "bit {bit}");
        }
        for len in 0..meaningful {
            assert_eq!(decode_frame(KEY, 4, &frame.slice(..len)), None, "length {len}");
        }
    }

    #[test]
    fn truncated_payloads_do_not_decode() {
        let mut payload = BytesMut::new();
        operations().iter().for_each(|operation| operation.encode(&mut payload));
        let payload = payload.freeze();
        let decodable = (0..payload.len()).filter(|len| decode_payload(payload.slice(..*len)).is_some()).count();
        assert_eq!(decodable, operations().len(), "only at the ends of operations");
    }
}
