//! The `jenkins_lookup3` codec: appends Bob Jenkins's lookup3 hash.
//!
//! - Kind: bytes to bytes
//! - Names: `numcodecs.jenkins_lookup3` (v3), id `jenkins_lookup3` (v2, draft)
//! - Specification: [numcodecs.jenkins_lookup3](https://numcodecs.readthedocs.io/en/stable/checksum32.html), which is
//!   `hashlittle` of [lookup3](https://www.burtleburtle.net/bob/c/lookup3.c), as in HDF5
//!
//! ## Configuration
//!
//! ```json
//! {"initval": 0, "prefix": null}
//! ```
//!
//! `initval` is the initial value of the hash. `prefix` is hashed before the bytes and not stored; numcodecs has Python
//! bytes there, which JSON cannot represent, so it is a list of byte values here.
//!
//! ## Encoded bytes
//!
//! The decoded bytes followed by a little-endian `u32`.
//!
//! ## Errors and limits
//!
//! Fewer than four bytes and a hash mismatch are errors. Decoding returns a slice of its input; it does not copy.

use std::iter;

use serde::Deserialize;
use zarrd_meta::codecs::{CodecSpec, Namespace};

use super::checksum::{Location, checksum_codec};
use crate::{ChainError, Codec, CodecFactory, CodecInput, FactoryContext, factory::parse_configuration};

const NAME: &str = "jenkins_lookup3";

/// The initial state, to which the length and the initial value are added.
const SEED: u32 = 0xdead_beef;

/// The number of bytes mixed at a time.
const BLOCK_SIZE: usize = 12;

pub(crate) static FACTORIES: &[CodecFactory] = &[CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create }];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    #[serde(default)]
    initval: u32,
    prefix: Option<Vec<u8>>,
}

/// The state of the hash.
struct State {
    a: u32,
    b: u32,
    c: u32,
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    input.bytes(spec)?;
    let Configuration { initval, prefix } = parse_configuration(spec)?;
    let prefix = prefix.unwrap_or_default();
    Ok(checksum_codec(NAME, Location::End, move |bytes| lookup3(&prefix, bytes, initval)))
}

/// The hash of `prefix` and `bytes`.
fn lookup3(prefix: &[u8], bytes: &[u8], initval: u32) -> u32 {
    let len = prefix.len().wrapping_add(bytes.len());
    // The hash uses the length modulo 2^32.
    let start = SEED.wrapping_add(len as u32).wrapping_add(initval);
    let mut state = State { a: start, b: start, c: start };
    if len == 0 {
        return start;
    }
    // Completes the last block of the prefix with the first bytes, so that the rest is hashed in place.
    let fill = (BLOCK_SIZE - prefix.len() % BLOCK_SIZE) % BLOCK_SIZE;
    let (filling, rest) = bytes.split_at_checked(fill).unwrap_or((bytes, &[]));
    let head: Vec<u8> = prefix.iter().chain(filling).copied().collect();
    let mut blocks = head.chunks(BLOCK_SIZE).chain(rest.chunks(BLOCK_SIZE)).filter(|block| !block.is_empty());
    let Some(mut finish) = blocks.next() else { return start };
    for block in blocks {
        state.add(finish);
        state.mix();
        finish = block;
    }
    state.add(finish);
    state.finish()
}

impl State {
    /// Adds a block, padded with zeros.
    fn add(&mut self, block: &[u8]) {
        let mut bytes = [0; BLOCK_SIZE];
        iter::zip(&mut bytes, block).for_each(|(to, from)| *to = *from);
        let words: [u32; 3] = std::array::from_fn(|word| {
            bytes.as_chunks::<4>().0.get(word).map_or(0, |bytes| u32::from_le_bytes(*bytes))
        });
        let [a, b, c] = words;
        self.a = self.a.wrapping_add(a);
        self.b = self.b.wrapping_add(b);
        self.c = self.c.wrapping_add(c);
    }

    /// Mixes the state reversibly, between blocks.
    fn mix(&mut self) {
        let Self { a, b, c } = self;
        for (first, second) in [(4, 6), (8, 16), (19, 4)] {
            *a = a.wrapping_sub(*c) ^ c.rotate_left(first);
            *c = c.wrapping_add(*b);
            *b = b.wrapping_sub(*a) ^ a.rotate_left(second);
            *a = a.wrapping_add(*c);
            // The three words rotate from one pair of steps to the next.
            (*a, *b, *c) = (*c, *a, *b);
        }
    }

    /// Mixes the final state into one word.
    fn finish(self) -> u32 {
        let Self { mut a, mut b, mut c } = self;
        for (first, second, third) in [(14, 11, 25), (16, 4, 14)] {
            c = (c ^ b).wrapping_sub(b.rotate_left(first));
            a = (a ^ c).wrapping_sub(c.rotate_left(second));
            b = (b ^ a).wrapping_sub(a.rotate_left(third));
        }
        (c ^ b).wrapping_sub(b.rotate_left(24))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_matches_known_values() {
        let known: [(&[u8], &[u8], u32, u32); 9] = [
            (b"", b"abcdefghijklmnop", 0, 0x1134_7272),
            (b"", b"", 0, 0xdead_beef),
            (b"", b"abcdefghijkl", 0, 0x4012_f87b),
            (b"", b"abcdefghijklmnop", 12345, 0x20dd_cfb2),
            (b"", b"", 12345, 0xdead_ef28),
            (b"", b"abcdefghijkl", 12345, 0xdf74_5c1b),
            (b"ab", b"abcdefghijklmnop", 0, 0xfea0_5bf1),
            (b"ab", b"", 0, 0xfbb3_a8df),
            (b"ab", b"abcdefghijkl", 0, 0x5145_9eb2),
        ];
        for (prefix, bytes, initval, hash) in known {
            assert_eq!(lookup3(prefix, bytes, initval), hash, "{prefix:?} {bytes:?} {initval}");
        }
    }

    #[test]
    fn prefix_is_hashed_before_the_bytes() {
        let bytes: Vec<u8> = (0..60).collect();
        for split in 0..=bytes.len() {
            for end in split..=bytes.len() {
                let (prefix, rest) = (&bytes[..split], &bytes[split..end]);
                assert_eq!(lookup3(prefix, rest, 7), lookup3(&[], &bytes[..end], 7), "{split} {end}");
            }
        }
    }
}
