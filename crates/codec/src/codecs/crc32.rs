//! The `crc32` codec: appends or prepends the CRC-32 checksum of zlib.
//!
//! - Kind: bytes to bytes
//! - Names: `numcodecs.crc32` (v3), id `crc32` (v2, draft)
//! - Specification: [numcodecs.crc32](https://numcodecs.readthedocs.io/en/stable/checksum32.html)
//!
//! ## Configuration
//!
//! ```json
//! {"location": "start"}
//! ```
//!
//! `location` is `start` (the default) or `end`.
//!
//! ## Encoded bytes
//!
//! The decoded bytes with a little-endian `u32` before or after them.
//!
//! ## Errors and limits
//!
//! Fewer than four bytes and a checksum mismatch are errors. Decoding returns a slice of its input; it does not copy.

use zarrd_meta::codecs::{CodecSpec, Namespace};

use super::checksum::{Location, create_with_location};
use crate::{ChainError, Codec, CodecFactory, CodecInput, FactoryContext};

const NAME: &str = "crc32";

pub(crate) static FACTORIES: &[CodecFactory] = &[CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create }];

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    create_with_location(spec, input, NAME, Location::Start, libdeflater::crc32)
}
