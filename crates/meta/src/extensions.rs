//! Extensions: what a document says that a reader may have to understand.

use serde_json::{Map, Value};

/// An entry of the `extensions` of a node ([ZEP 10](https://zarr.dev/zeps/draft/ZEP0010.html), and the draft's own list).
#[derive(Clone, Debug, PartialEq)]
pub struct Extension {
    /// Its name, or the draft's URI.
    pub name: String,
    /// Its configuration; empty where there is none.
    pub configuration: Map<String, Value>,
    /// Whether a reader that does not know it must refuse the node.
    pub must_understand: bool,
}
