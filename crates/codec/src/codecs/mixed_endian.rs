//! The `mixed_endian` codec: stores elements consecutively, some of their words big-endian and the others
//! little-endian.
//!
//! - Kind: array to bytes
//! - Names: none in documents; a v2 struct with fields of both byte orders is read into [`CodecSpec::MIXED_ENDIAN`]
//!
//! ## Configuration
//!
//! ```json
//! {"big": [[0, 4, 1], [8, 2, 3]]}
//! ```
//!
//! `big` lists the big-endian words as `[offset, width, count]`.
//!
//! ## Encoded bytes
//!
//! The elements in C order, each with these words byte-swapped.
//!
//! ## Errors and limits
//!
//! The words lie within the element, in order and without overlap. The encoded bytes have exactly the chunk's size.

use serde::Deserialize;
use zarrd_meta::{
    codecs::{CodecSpec, Namespace},
    data_type::{StoredOrder, WordRun},
    limits::MAX_FIELDS,
};

use super::bytes::BytesCodec;
use crate::{
    ChainError, Codec, CodecFactory, CodecInput, FactoryContext,
    factory::{invalid_configuration, parse_configuration},
};

const NAME: &str = CodecSpec::MIXED_ENDIAN;

pub(crate) static FACTORIES: &[CodecFactory] = &[CodecFactory { namespace: Namespace::Model, name: NAME, create }];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    big: Vec<[usize; 3]>,
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let array = input.array(spec)?;
    let runs = parse_configuration::<Configuration>(spec)?.big;
    let size = array.data_type().fixed_size().unwrap_or(0);
    let mut end = 0;
    let mut big = Vec::new();
    for [offset, width, count] in runs {
        let after = width.checked_mul(count).and_then(|len| offset.checked_add(len));
        let fits = offset >= end && width >= 2 && count >= 1 && big.len() < MAX_FIELDS;
        end = after.filter(|&after| fits && after <= size).ok_or_else(|| {
            invalid_configuration(spec, format!("has invalid big-endian words for {}", array.data_type()))
        })?;
        big.push(WordRun { offset, width, count });
    }
    BytesCodec::create(NAME, array, StoredOrder::Mixed(big))
}
