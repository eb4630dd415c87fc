//! From one dialect's documents to another's, with everything that is lost on the way.
//!
//! The chunks of an array have the same bytes in both dialects. What a dialect only writes differently is no loss: order `F` and a `transpose`, the byte order
//! of a `dtype` and that of the codec `bytes`, filters and compressor and a chain of codecs, `numcodecs.*` names, xarray's attribute
//! `_ARRAY_DIMENSIONS` and `dimension_names`, the draft's storage transformer and `sharding_indexed`. What is written for v3 is what
//! zarr-python 3 reads, and for the draft, what zarr-python 2 wrote.

use serde_json::{Map, Value};

use crate::{
    ArrayModel, Dialect,
    documents::write::join_v2,
    json::{Change, Json},
};

mod chain;
mod codec;
mod draft;
mod filter;
mod group;
mod source;
#[cfg(test)]
mod tests;
mod v2;
mod v3;

pub use group::group;
use source::Source;

/// A node document of another dialect.
#[derive(Clone, Debug, PartialEq)]
pub struct Converted {
    /// The node document: in v2 with `attributes`.
    pub document: Json,
    /// Properties of the original that it cannot represent.
    pub losses: Vec<Loss>,
}

/// Something that another dialect's document does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The location in the original: a JSON pointer into its node document.
    pub pointer: String,
    /// The lost property, which continues "what is lost:".
    pub property: String,
}

/// Another dialect has no document for an array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{dialect} has no such array: {pointer} {reason}")]
pub struct Unconvertible {
    /// The dialect.
    pub dialect: Dialect,
    /// The location in the original of the property that cannot be represented: a JSON pointer into its node document.
    pub pointer: String,
    /// The reason, which continues "the member".
    pub reason: String,
}

/// The chunks that a document is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKeyPolicy {
    /// The existing ones: same keys, same bytes.
    Preserve,
    /// New ones, or copies, at the keys that the dialect prefers; their bytes are the same.
    Preferred,
}

/// A property that a dialect cannot represent, and its location in the original.
#[derive(Debug)]
struct Unrepresentable {
    pointer: String,
    reason: String,
}

impl Unrepresentable {
    fn new(pointer: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), reason: reason.into() }
    }
}

/// The document of an array in another dialect; in its own, its node document.
///
/// Chunks are [kept](Chunks::Kept) between v2 and those arrays of v3 whose chunk key encoding is `v2`.
pub fn array(model: &ArrayModel, to: Dialect, chunks: ChunkKeyPolicy) -> Result<Converted, Unconvertible> {
    if model.dialect == to {
        let document = match to {
            Dialect::V2 => join_v2(&model.document, &model.attributes),
            Dialect::V3 | Dialect::Draft => model.document.clone(),
        };
        return Ok(Converted { document, losses: Vec::new() });
    }
    let mut source = Source::new(model);
    let document = match to {
        Dialect::V2 => v2::array(&mut source, chunks),
        Dialect::V3 => v3::array(&mut source, chunks),
        Dialect::Draft => draft::array(&mut source, chunks),
    };
    let document =
        document.map_err(|Unrepresentable { pointer, reason }| Unconvertible { dialect: to, pointer, reason })?;
    Ok(Converted { document, losses: source.losses })
}

/// A document of members, of which `attributes` are these, in their own words.
fn document(members: Map<String, Value>, attributes: Json) -> Json {
    Json::from(members).with("attributes", Change::SetText(attributes))
}
