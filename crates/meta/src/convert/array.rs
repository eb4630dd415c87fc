//! Conversion of arrays.

use super::{
    draft, mask,
    outcome::{ArrayContext, ChunkPolicy, Converted, Unconvertible, Unrepresentable},
    source::Source,
    v2, v3,
};
use crate::{ArrayModel, Dialect, documents::write::join_v2};

/// Converts an array's document to another dialect; in its own dialect, returns its node document.
///
/// The fill value can become `null`, or another one, if all chunks are stored: see [`depends_on_chunks`].
///
/// Chunk keys can be [preserved](ChunkPolicy::Preserve) between v2 and arrays of v3 whose chunk key encoding is
/// `v2`.
pub fn array(
    model: &ArrayModel,
    to: Dialect,
    chunks: ChunkPolicy,
    context: ArrayContext,
) -> Result<Converted, Unconvertible> {
    if model.dialect == to {
        let document = match to {
            Dialect::V2 => join_v2(&model.document, &model.attributes),
            Dialect::V3 | Dialect::Draft => model.document.clone(),
        };
        return Ok(Converted { document, losses: Vec::new() });
    }
    let mut source = Source::new(model, context);
    let document = match to {
        Dialect::V2 => v2::array(&mut source, chunks),
        Dialect::V3 => v3::array(&mut source, chunks),
        Dialect::Draft => draft::array(&mut source, chunks),
    };
    let document =
        document.map_err(|Unrepresentable { pointer, reason }| Unconvertible { dialect: to, pointer, reason })?;
    Ok(Converted { document, losses: source.losses })
}

/// True if the document of an array in another dialect depends on whether all chunks are stored.
pub fn depends_on_chunks(model: &ArrayModel, to: Dialect, is_in_named_group: bool) -> bool {
    let context = ArrayContext { is_in_named_group, ..ArrayContext::default() };
    model.dialect == Dialect::V3 && to != Dialect::V3 && mask::depends_on_chunks(&mut Source::new(model, context))
}
