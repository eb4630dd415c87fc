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

/// Another node that an extension of a group names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The extension's name.
    pub extension: String,
    /// Where in the group's node document it is named: a JSON pointer.
    pub pointer: String,
    /// The path that it names, from the group on.
    pub path: String,
}

/// The extensions that are understood. These are ZEP 10's examples that tell something of a node, or of how it is to be written, and
/// leave its elements what they are.
static UNDERSTOOD: &[&str] =
    &["example.array-statistics", "example.multiscale-arrays", "example.skip_empty_chunks", "example.tiered-storage"];

impl Extension {
    /// Whether a node that has this one can be read: it is understood, or need not be.
    pub fn is_readable(&self) -> bool {
        !self.must_understand || UNDERSTOOD.contains(&self.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_read() {
        let readable = |name: &str, must_understand| {
            Extension { name: name.to_owned(), configuration: Map::new(), must_understand }.is_readable()
        };
        assert!(readable("example.skip_empty_chunks", true));
        assert!(readable("example.array-statistics", false));
        assert!(readable("example.offset", false));
        assert!(!readable("example.offset", true));
        assert!(!readable("example.unheard-of", true));
    }
}
