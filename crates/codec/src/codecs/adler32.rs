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
use crate::{ChainError, Input, Plugin, Resolved, registry::configuration};

const NAME: &str = "adler32";

pub(crate) static PLUGINS: &[Plugin] = &[Plugin { namespace: Namespace::Numcodecs, name: NAME, resolve }];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    location: Option<Location>,
}

fn resolve(spec: &CodecSpec, input: Input<'_>, _depth: usize) -> Result<Resolved, ChainError> {
    input.bytes(spec)?;
    let Configuration { location } = configuration(spec)?;
    Ok(checksum(NAME, location.unwrap_or(Location::Start), libdeflater::adler32))
}
