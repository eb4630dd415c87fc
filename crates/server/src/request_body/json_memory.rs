//! Estimates of the memory needed for a JSON document.

use zarrd_meta::limits::MAX_DOCUMENT_MEMORY;

/// An upper bound of the memory for parsing a document, estimated from a scan of its bytes.
///
/// Based on the worst documents found, in bytes of resident memory: `[0,0,…]` takes 340 for each element, `[{"":0},…]`
/// 1,900 for each object, `{"":{"":0}}` as much for both of its objects, `{"1":0,…}` 640 for each member, and a string
/// 15 times its length.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct JsonMemoryEstimate {
    bytes: u64,
    values: u64,
    objects: u64,
    members: u64,
    state: LexerState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LexerState {
    #[default]
    Structure,
    String,
    /// After a backslash in a string.
    Escape,
}

/// The size of a parsed JSON value, in bytes.
const VALUE_BYTES: u64 = 32;

/// The number of copies of a stored document that exist at the same time.
const COPIES_OF_STORED_BYTE: u64 = 8;

/// The memory of a node in addition to its documents while a tree is created, in bytes.
pub(crate) const NODE_OVERHEAD_BYTES: u64 = 2 << 10;

const PARSE_BYTES_PER_BYTE: u64 = 16;
const PARSE_BYTES_PER_VALUE: u64 = 360;
const PARSE_BYTES_PER_OBJECT: u64 = 1400;
const PARSE_BYTES_PER_MEMBER: u64 = 300;

impl JsonMemoryEstimate {
    /// Scans a document.
    pub(crate) fn of(text: &[u8]) -> Self {
        let mut estimate = Self::default();
        estimate.add(text);
        estimate
    }

    /// An upper bound of the memory for parsing the document, in bytes.
    pub(crate) fn parsed_bytes(&self) -> u64 {
        let parts = [
            (self.bytes, PARSE_BYTES_PER_BYTE),
            (self.values, PARSE_BYTES_PER_VALUE),
            (self.objects, PARSE_BYTES_PER_OBJECT),
            (self.members, PARSE_BYTES_PER_MEMBER),
        ];
        parts.iter().map(|(count, each)| count.saturating_mul(*each)).fold(0, u64::saturating_add)
    }

    /// An upper bound of the memory for metadata documents, in bytes. These stay text, of which the body, the stored
    /// documents and the response hold copies; only the description of one node at a time is parsed to values.
    pub(crate) fn document_bytes(&self) -> u64 {
        let values = [
            (self.values, 2 * VALUE_BYTES),
            (self.members, 4 * VALUE_BYTES),
            (self.objects, 18 * VALUE_BYTES),
            (self.bytes, 1),
        ];
        let values = values.iter().map(|(count, each)| count.saturating_mul(*each)).fold(0, u64::saturating_add);
        self.bytes.saturating_mul(COPIES_OF_STORED_BYTE).saturating_add(values.min(MAX_DOCUMENT_MEMORY as u64))
    }

    fn add(&mut self, text: &[u8]) {
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        for &byte in text {
            self.state = match (self.state, byte) {
                (LexerState::Structure, b'"') => LexerState::String,
                (LexerState::Structure, _) => {
                    self.count_structure(byte);
                    LexerState::Structure
                }
                (LexerState::String, b'"') => LexerState::Structure,
                (LexerState::String, b'\\') => LexerState::Escape,
                (LexerState::String | LexerState::Escape, _) => LexerState::String,
            };
        }
    }

    fn count_structure(&mut self, byte: u8) {
        let increment = |count: &mut u64| *count = count.saturating_add(1);
        match byte {
            b',' | b'[' => increment(&mut self.values),
            b'{' => {
                increment(&mut self.values);
                increment(&mut self.objects);
            }
            b':' => increment(&mut self.members),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_not_counted_as_structure() {
        let text = br#"{"a,b:{[\"":[1,2,{}],"c":"{,:\\"}"#;
        let cost = JsonMemoryEstimate::of(text);
        assert_eq!((cost.bytes, cost.values, cost.objects, cost.members), (text.len() as u64, 6, 2, 2));
    }

    #[test]
    fn it_is_no_less_than_what_was_measured() {
        const MIB: u64 = 1 << 20;
        // The repeated part of the document, the number of repetitions, and the measured memory.
        for (part, times, measured) in [
            ("0,", 1_500_000, 509),
            ("[],", 1_000_000, 310),
            ("{},", 1_000_000, 312),
            ("{\"\":0},", 428_571, 802),
            ("{\"\":{\"\":0}},", 250_000, 911),
            ("\"\",", 1_000_000, 323),
            ("\"12345\":0,", 333_339, 205),
        ] {
            assert!(JsonMemoryEstimate::of(part.repeat(times).as_bytes()).parsed_bytes() >= measured * MIB, "{part}");
        }
        assert!(JsonMemoryEstimate::of(format!("\"{}\"", "x".repeat(3_000_000)).as_bytes()).parsed_bytes() >= 44 * MIB);
    }
}
