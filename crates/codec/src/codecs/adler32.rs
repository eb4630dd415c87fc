//! The `adler32` codec: appends or prepends the Adler-32 checksum of zlib.
//!
//! - Kind: bytes to bytes
//! - Names: `numcodecs.adler32` (v3), id `adler32` (v2, draft)
//! - Specification: [numcodecs.adler32](https://numcodecs.readthedocs.io/en/stable/checksum32.html)
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

use meta::codecs::{CodecSpec, Namespace};
use serde::Deserialize;

use super::checksum::{Location, checksum_codec};
use crate::{ChainError, Codec, CodecFactory, CodecInput, FactoryContext, factory::parse_configuration};

const NAME: &str = "adler32";

pub(crate) static FACTORIES: &[CodecFactory] = &[CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create }];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    location: Option<Location>,
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    input.bytes(spec)?;
    let Configuration { location } = parse_configuration(spec)?;
    Ok(checksum_codec(NAME, location.unwrap_or(Location::Start), libdeflater::adler32))
}
