//! How much memory the values of a text take, before they are made.

use serde_json::{Map, Value};

/// The least and the usual room that a list or an object gets: so many entries, then twice as many, and so on.
const FIRST_ROOM: usize = 4;

/// An entry of an object: its name, its value and its hash.
const ENTRY: usize = size_of::<(String, Value, u64)>();

/// What the table of an object has for each entry, with what it keeps free.
const SLOT: usize = 20;

/// The least that an allocator hands out.
const ALLOCATION: usize = 32;

/// Objects and lists as deep as serde_json reads them; deeper ones it refuses.
const MAX_DEPTH: usize = 128;

/// A container that is open.
struct Open {
    is_object: bool,
    commas: usize,
}

/// An estimate of the bytes of memory that the values of a JSON text take. A byte of the text can make a hundred of values.
pub(super) fn estimate(json: &[u8]) -> usize {
    let mut open: Vec<Open> = Vec::with_capacity(MAX_DEPTH);
    let mut size = size_of::<Map<String, Value>>();
    let mut rest = json.iter();
    while let Some(&byte) = rest.next() {
        match byte {
            b'"' => size = size.saturating_add(string(&mut rest)),
            b'{' | b'[' if open.len() == MAX_DEPTH => return size,
            b'{' | b'[' => open.push(Open { is_object: byte == b'{', commas: 0 }),
            b',' => {
                let Some(last) = open.last_mut() else { continue };
                last.commas = last.commas.saturating_add(1);
            }
            b'}' | b']' => size = size.saturating_add(open.pop().map_or(0, |last| last.size())),
            _ => {}
        }
    }
    open.iter().fold(size, |size, open| size.saturating_add(open.size()))
}

impl Open {
    fn size(&self) -> usize {
        let room = self.commas.saturating_add(1).next_power_of_two().max(FIRST_ROOM);
        let entry = if self.is_object { ENTRY + SLOT } else { size_of::<Value>() };
        room.saturating_mul(entry)
    }
}

/// Reads on to the end of a string, and says what the string takes.
fn string<'a>(rest: &mut impl Iterator<Item = &'a u8>) -> usize {
    let mut len = 0_usize;
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => break,
            b'\\' => drop(rest.next()),
            _ => {}
        }
        len = len.saturating_add(1);
    }
    len.max(ALLOCATION)
}
