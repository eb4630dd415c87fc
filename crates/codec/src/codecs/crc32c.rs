//! The `crc32c` codec: appends or prepends the CRC-32C (Castagnoli) checksum.
//!
//! - Kind: bytes to bytes
//! - Names: `crc32c` and `numcodecs.crc32c` (v3), id `crc32c` (v2, draft)
//! - Specification: [crc32c codec 1.0](https://zarr-specs.readthedocs.io/en/latest/v3/codecs/crc32c/index.html),
//!   [numcodecs.crc32c](https://numcodecs.readthedocs.io/en/stable/checksum32.html)
//!
//! ## Configuration
//!
//! ```json
//! {"location": "end"}
//! ```
//!
//! `location` is `start` or `end` (the default). The specification of v3 has no configuration; the one of numcodecs is
//! accepted there, too.
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

const NAME: &str = "crc32c";

pub(crate) static FACTORIES: &[CodecFactory] = &[
    CodecFactory { namespace: Namespace::V3, name: NAME, create },
    CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create },
];

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    create_with_location(spec, input, NAME, Location::End, ::crc32c::crc32c)
}
