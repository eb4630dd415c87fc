//! The `fletcher32` codec: appends the Fletcher-32 checksum of HDF5.
//!
//! - Kind: bytes to bytes
//! - Names: `numcodecs.fletcher32` (v3), id `fletcher32` (v2, draft)
//! - Specification: [numcodecs.fletcher32](https://numcodecs.readthedocs.io/en/stable/checksum32.html), which is
//!   `H5_checksum_fletcher32` of [HDF5](https://github.com/HDFGroup/hdf5/blob/develop/src/H5checksum.c)
//!
//! ## Configuration
//!
//! ```json
//! {}
//! ```
//!
//! The codec has no configuration.
//!
//! ## Encoded bytes
//!
//! The decoded bytes followed by a little-endian `u32`: two sums of big-endian 16-bit words. An odd last byte is the
//! upper half of a word. The checksum of no bytes is 0, where numcodecs fails.
//!
//! ## Errors and limits
//!
//! Fewer than four bytes and a checksum mismatch are errors. Decoding returns a slice of its input; it does not copy.

use serde::Deserialize;
use zarrd_meta::codecs::{CodecSpec, Namespace};

use super::checksum::{Location, checksum_codec};
use crate::{ChainError, Codec, CodecFactory, CodecInput, FactoryContext, factory::parse_configuration};

const NAME: &str = "fletcher32";

/// The number of words after which the sums are reduced, so that they fit 32 bits.
const WORDS_PER_REDUCTION: usize = 360;

pub(crate) static FACTORIES: &[CodecFactory] = &[CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create }];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    input.bytes(spec)?;
    let Configuration {} = parse_configuration(spec)?;
    Ok(checksum_codec(NAME, Location::End, fletcher32))
}

fn fletcher32(bytes: &[u8]) -> u32 {
    let (words, odd) = bytes.as_chunks::<2>();
    let (mut sum, mut sums) = (0_u32, 0_u32);
    for words in words.chunks(WORDS_PER_REDUCTION) {
        for word in words {
            sum += u32::from(u16::from_be_bytes(*word));
            sums += sum;
        }
        (sum, sums) = (reduce(sum), reduce(sums));
    }
    if let [odd] = odd {
        sum += u32::from(*odd) << 8;
        sums += sum;
        (sum, sums) = (reduce(sum), reduce(sums));
    }
    (reduce(sums) << 16) | reduce(sum)
}

/// Reduces a sum modulo 65535, except that a sum other than zero never becomes zero.
fn reduce(sum: u32) -> u32 {
    (sum & 0xffff) + (sum >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_matches_known_values() {
        let all: Vec<u8> = (0..=255).cycle().take(768).collect();
        let known: [(&[u8], [u8; 4]); 7] = [
            (b"a", [0x00, 0x61, 0x00, 0x61]),
            (b"ab", [0x62, 0x61, 0x62, 0x61]),
            (b"abc", [0x62, 0xc4, 0xc5, 0x25]),
            (b"abcd", [0xc6, 0xc4, 0x29, 0x26]),
            (b"abcde", [0xc7, 0x29, 0xf0, 0x4f]),
            (&all, [0xbf, 0x40, 0x00, 0x60]),
            (&[0xff; 5000], [0xff; 4]),
        ];
        for (bytes, sum) in known {
            assert_eq!(fletcher32(bytes).to_le_bytes(), sum, "{bytes:?}");
        }
        assert_eq!(fletcher32(b""), 0);
    }
}
