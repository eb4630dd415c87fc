//! From one dialect's documents to another's, with everything that is lost on the way.

use serde_json::{Map, Value};

use crate::{ArrayModel, Dialect, documents::GroupModel};

/// A node document of another dialect.
#[derive(Clone, Debug, PartialEq)]
pub struct Converted {
    /// The node document: in v2 with `attributes`.
    pub document: Map<String, Value>,
    /// What it does not say of what the original says.
    pub losses: Vec<Loss>,
}

/// Something that another dialect's document does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Where the original says it: a JSON pointer into its node document.
    pub pointer: String,
    /// What is lost, as it continues "what is lost:".
    pub what: String,
}

/// Another dialect has no document for an array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{dialect} has no such array: {pointer} {reason}")]
pub struct Inconvertible {
    /// The dialect.
    pub dialect: Dialect,
    /// What of the original it cannot say: a JSON pointer into its node document.
    pub pointer: String,
    /// Why, as it continues "the member".
    pub reason: String,
}

/// Which chunks a document is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunks {
    /// Those that are there: same keys, same bytes.
    Kept,
    /// New ones, or copies, at the keys that the dialect prefers; their bytes are the same.
    Moved,
}

/// The document of an array in another dialect. Of the draft it has no `filters` in the attributes where there are none.
pub fn array(model: &ArrayModel, to: Dialect, chunks: Chunks) -> Result<Converted, Inconvertible> {
    let _ = (model, to, chunks);
    todo!()
}

/// The document of a group in another dialect, without consolidated metadata.
pub fn group(model: &GroupModel, to: Dialect) -> Converted {
    let _ = (model, to);
    todo!()
}
