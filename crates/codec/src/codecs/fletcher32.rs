//! `fletcher32`: the Fletcher checksum of HDF5 after the bytes.
//!
//! Specification: [numcodecs.fletcher32](https://numcodecs.readthedocs.io/en/stable/checksum32.html), which is
//! [HDF5's](https://github.com/HDFGroup/hdf5/blob/develop/src/H5checksum.c) `H5_checksum_fletcher32`. It has no configuration.
//!
//! ```json
//! {}
//! ```
//!
//! The sums are of words of two bytes, the most significant first; an odd last byte is the upper half of one. The sum of no bytes is 0, where numcodecs
//! fails. Limits: what is decoded is the encoded bytes without four of them; nothing is copied.

use meta::codecs::{CodecSpec, Namespace};
use serde::Deserialize;

use super::checksum::{Location, checksum};
use crate::{ChainError, Codec, CodecFactory, CodecInput, FactoryContext, factory::parse_configuration};

const NAME: &str = "fletcher32";

/// The number of words after which the sums are reduced, so that they fit into 32 bits.
const WORDS: usize = 360;

pub(crate) static FACTORIES: &[CodecFactory] = &[CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create }];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    input.bytes(spec)?;
    let Configuration {} = parse_configuration(spec)?;
    Ok(checksum(NAME, Location::End, fletcher32))
}

fn fletcher32(bytes: &[u8]) -> u32 {
    let (words, odd) = bytes.as_chunks::<2>();
    let (mut sum, mut sums) = (0_u32, 0_u32);
    for words in words.chunks(WORDS) {
        for word in words {
            sum += u32::from(u16::from_be_bytes(*word));
            sums += sum;
        }
        (sum, sums) = (fold(sum), fold(sums));
    }
    if let [odd] = odd {
        sum += u32::from(*odd) << 8;
        sums += sum;
        (sum, sums) = (fold(sum), fold(sums));
    }
    (fold(sums) << 16) | fold(sum)
}

/// Subtracts 65535 as often as half of the bits say. A sum that is not zero never becomes zero by it, which a remainder would.
fn fold(sum: u32) -> u32 {
    (sum & 0xffff) + (sum >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_sums() {
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
