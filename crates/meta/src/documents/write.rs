//! Node documents as the values of keys.

use serde_json::{Map, Value};

/// The text of a document as it is stored.
pub fn text(document: &Map<String, Value>) -> Vec<u8> {
    let _ = document;
    todo!()
}

/// Takes the `attributes` out of a node document of v2: what goes into `.zarray` or `.zgroup`, and what goes into `.zattrs`, which is left out where it is empty.
pub fn split_v2(document: &Map<String, Value>) -> (Map<String, Value>, Option<Map<String, Value>>) {
    let _ = document;
    todo!()
}

/// The node document of an array or a group of v2: its own with the `attributes` of the `.zattrs`.
pub fn join_v2(document: &Map<String, Value>, attributes: &Map<String, Value>) -> Map<String, Value> {
    let _ = (document, attributes);
    todo!()
}

/// The entry point of a new hierarchy of the draft.
pub fn draft_entry_point() -> Map<String, Value> {
    todo!()
}

/// A `.zmetadata` in which the node at `below` (`a/b`, empty for the group itself) has this node document, or is gone with all below it.
pub fn consolidated_v2(
    zmetadata: &Map<String, Value>,
    below: &str,
    node: Option<&Map<String, Value>>,
) -> Map<String, Value> {
    let _ = (zmetadata, below, node);
    todo!()
}

/// The `zarr.json` of a group with consolidated metadata, in which the node at `below` (`a/b`, never empty) has this document, or is gone with all below it.
pub fn consolidated_v3(
    zarr_json: &Map<String, Value>,
    below: &str,
    node: Option<&Map<String, Value>>,
) -> Map<String, Value> {
    let _ = (zarr_json, below, node);
    todo!()
}
