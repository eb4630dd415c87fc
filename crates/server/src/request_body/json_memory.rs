//! What JSON costs in memory, as far as its text tells.

use meta::limits::MAX_DESCRIPTION;

/// A bound of the memory that a document, and what is made of it, takes while it is parsed: seen byte by byte, without parsing.
///
/// Measured with the worst documents that were found, in bytes of resident memory for each value, object and member: `[0,0,…]` takes 340 for each
/// element, `[{"":0},…]` 1,900 for each object, and `{"":{"":0}}` as much for each of the two; `{"1":0,…}` takes 640 for each member, a string fifteen times its length.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    bytes: u64,
    values: u64,
    objects: u64,
    members: u64,
    place: Place,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Outside,
    Text,
    /// After a backslash within a text.
    Escape,
}

/// The size of a JSON value.
const VALUE: u64 = 32;

/// How many copies there are of a document that is stored.
const OF_STORED_BYTE: u64 = 8;

/// What a node takes beside its documents while a tree is declared.
pub(crate) const OF_NODE: u64 = 2 << 10;

const OF_BYTE: u64 = 16;
const OF_VALUE: u64 = 360;
const OF_OBJECT: u64 = 1400;
const OF_MEMBER: u64 = 300;

impl Cost {
    /// That of a document.
    pub(crate) fn of(text: &[u8]) -> Self {
        let mut cost = Self::default();
        cost.add(text);
        cost
    }

    /// The bytes of memory that parsing it takes at the most.
    pub(crate) fn parsed(&self) -> u64 {
        let parts =
            [(self.bytes, OF_BYTE), (self.values, OF_VALUE), (self.objects, OF_OBJECT), (self.members, OF_MEMBER)];
        parts.iter().map(|(count, each)| count.saturating_mul(*each)).fold(0, u64::saturating_add)
    }

    /// The bytes of memory that it takes as the documents of nodes, which stay text: the body, what is stored, and the answer, each with what is made of it on the way; and the values of
    /// the members that describe one node at a time.
    pub(crate) fn documents(&self) -> u64 {
        let values = [(self.values, 2 * VALUE), (self.members, 4 * VALUE), (self.objects, 18 * VALUE), (self.bytes, 1)];
        let values = values.iter().map(|(count, each)| count.saturating_mul(*each)).fold(0, u64::saturating_add);
        self.bytes.saturating_mul(OF_STORED_BYTE).saturating_add(values.min(MAX_DESCRIPTION as u64))
    }

    fn add(&mut self, text: &[u8]) {
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        for &byte in text {
            self.place = match (self.place, byte) {
                (Place::Outside, b'"') => Place::Text,
                (Place::Outside, _) => {
                    self.structure(byte);
                    Place::Outside
                }
                (Place::Text, b'"') => Place::Outside,
                (Place::Text, b'\\') => Place::Escape,
                (Place::Text | Place::Escape, _) => Place::Text,
            };
        }
    }

    fn structure(&mut self, byte: u8) {
        let one = |count: &mut u64| *count = count.saturating_add(1);
        match byte {
            b',' | b'[' => one(&mut self.values),
            b'{' => {
                one(&mut self.values);
                one(&mut self.objects);
            }
            b':' => one(&mut self.members),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structure_counts_and_text_does_not() {
        let text = br#"{"a,b:{[\"":[1,2,{}],"c":"{,:\\"}"#;
        let cost = Cost::of(text);
        assert_eq!((cost.bytes, cost.values, cost.objects, cost.members), (text.len() as u64, 6, 2, 2));
    }

    #[test]
    fn it_is_no_less_than_what_was_measured() {
        const MIB: u64 = 1 << 20;
        // The document, how often its part is repeated, and the memory that was seen.
        for (part, times, seen) in [
            ("0,", 1_500_000, 509),
            ("[],", 1_000_000, 310),
            ("{},", 1_000_000, 312),
            ("{\"\":0},", 428_571, 802),
            ("{\"\":{\"\":0}},", 250_000, 911),
            ("\"\",", 1_000_000, 323),
            ("\"12345\":0,", 333_339, 205),
        ] {
            assert!(Cost::of(part.repeat(times).as_bytes()).parsed() >= seen * MIB, "{part}");
        }
        assert!(Cost::of(format!("\"{}\"", "x".repeat(3_000_000)).as_bytes()).parsed() >= 44 * MIB);
    }
}
