//! `crc32c`: the CRC-32 of Castagnoli after the bytes.
//!
//! Specification: [crc32c codec 1.0](https://zarr-specs.readthedocs.io/en/latest/v3/codecs/crc32c/index.html), which has no configuration;
//! [numcodecs.crc32c](https://numcodecs.readthedocs.io/en/stable/checksum32.html), which has a location, by default `end`. It is read in v3 as well.
//!
//! ```json
//! {"location": "end"}
//! ```
//!
//! Limits: what is decoded is the encoded bytes without four of them; nothing is copied.

use meta::codecs::{CodecSpec, Namespace};
use serde::Deserialize;

use super::checksum::{Location, checksum};
use crate::{ChainError, Codec, CodecFactory, CodecInput, FactoryContext, factory::parse_configuration};

const NAME: &str = "crc32c";

pub(crate) static FACTORIES: &[CodecFactory] = &[
    CodecFactory { namespace: Namespace::V3, name: NAME, create },
    CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create },
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    location: Option<Location>,
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    input.bytes(spec)?;
    let Configuration { location } = parse_configuration(spec)?;
    Ok(checksum(NAME, location.unwrap_or(Location::End), ::crc32c::crc32c))
}
