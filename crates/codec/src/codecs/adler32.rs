//! `adler32`: the Adler-32 of zlib before or after the bytes.
//!
//! Specification: [numcodecs.adler32](https://numcodecs.readthedocs.io/en/stable/checksum32.html). Where no location is given, it is `start`.
//!
//! ```json
//! {"location": "start"}
//! ```
//!
//! Limits: what is decoded is the encoded bytes without four of them; nothing is copied.

use meta::codecs::{CodecSpec, Namespace};
use serde::Deserialize;

use super::checksum::{Location, checksum};
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
    Ok(checksum(NAME, location.unwrap_or(Location::Start), libdeflater::adler32))
}
