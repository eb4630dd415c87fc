//! Node documents as the values of keys.

use std::io;

use serde_json::{Map, Value, json};

use super::parts::object;
use crate::limits::MAX_DOCUMENT;

/// The member of a node document in which its attributes are.
const ATTRIBUTES: &str = "attributes";

/// How many times as long as without it a text may be with indentation.
const MAX_INDENTATION: usize = 8;

/// The text of a document as it is stored: indented by two, as zarr-python has it, in the order of its members. What is nested so deeply that indentation
/// would make it many times as long, or longer than a document may be, has none.
pub fn text(document: &Map<String, Value>) -> Vec<u8> {
    // A vector takes every byte, and the names of a document's members are texts.
    let compact = serde_json::to_vec(document).unwrap_or_default();
    let limit = compact.len().saturating_mul(MAX_INDENTATION).min(MAX_DOCUMENT);
    let mut indented = Bounded { bytes: Vec::with_capacity(compact.len()), limit };
    match serde_json::to_writer_pretty(&mut indented, document) {
        Ok(()) => indented.bytes,
        Err(_) => compact,
    }
}

/// Takes so many bytes and no more.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.limit.saturating_sub(self.bytes.len()) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes the `attributes` out of a node document of v2: what goes into `.zarray` or `.zgroup`, and what goes into `.zattrs`, which is left out where it is empty.
pub fn split_v2(document: &Map<String, Value>) -> (Map<String, Value>, Option<Map<String, Value>>) {
    let mut document = document.clone();
    let attributes = match document.shift_remove(ATTRIBUTES) {
        Some(Value::Object(attributes)) if !attributes.is_empty() => Some(attributes),
        _ => None,
    };
    (document, attributes)
}

/// The node document of an array or a group of v2: its own with the `attributes` of the `.zattrs`.
pub fn join_v2(document: &Map<String, Value>, attributes: &Map<String, Value>) -> Map<String, Value> {
    let mut document = document.clone();
    document.insert(ATTRIBUTES.to_owned(), Value::Object(attributes.clone()));
    document
}

/// The entry point of a new hierarchy of the draft, as zarr-python 2 writes it.
pub fn draft_entry_point() -> Map<String, Value> {
    object([
        ("extensions", json!([])),
        ("metadata_encoding", json!("https://purl.org/zarr/spec/protocol/core/3.0")),
        ("metadata_key_suffix", json!(".json")),
        ("zarr_format", json!("https://purl.org/zarr/spec/protocol/core/3.0")),
    ])
}

/// Changes a `.zmetadata`, so that the node at `below` (`a/b`, empty for the group itself) has this node document, while those below it stay; or is gone with all
/// below it.
///
/// What is no `.zmetadata` stays as it is.
pub fn consolidate_v2(zmetadata: &mut Map<String, Value>, below: &str, node: Option<&Map<String, Value>>) {
    let Some(metadata) = zmetadata.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let key = |name: &str| if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
    let [zarray, zgroup, zattrs] = [".zarray", ".zgroup", ".zattrs"].map(key);
    let Some(node) = node else {
        let prefix = key("");
        return metadata.retain(|key, _| !key.starts_with(&prefix));
    };
    let (document, attributes) = split_v2(node);
    let (array, group) = if node.contains_key("shape") { (Some(document), None) } else { (None, Some(document)) };
    put(metadata, zarray, array);
    put(metadata, zgroup, group);
    put(metadata, zattrs, attributes);
}

/// Changes the `zarr.json` of a group with consolidated metadata, so that the node at `below` (`a/b`) has this document there, while those below it stay; or
/// is gone with all below it.
///
/// The group itself (`below` is empty) is not told there, and what has no such metadata stays as it is. Groups are written with consolidated metadata of their own that is empty, as zarr-python does: their members stand
/// beside them.
pub fn consolidate_v3(zarr_json: &mut Map<String, Value>, below: &str, node: Option<&Map<String, Value>>) {
    let consolidated = zarr_json.get_mut("consolidated_metadata");
    let Some(metadata) = consolidated.and_then(|value| value.get_mut("metadata")).and_then(Value::as_object_mut) else {
        return;
    };
    if below.is_empty() {
        return;
    }
    let Some(node) = node else {
        let prefix = format!("{below}/");
        return metadata.retain(|path, _| path != below && !path.starts_with(&prefix));
    };
    let mut node = node.clone();
    if node.get("node_type").is_some_and(|kind| kind == "group") {
        let empty = json!({"kind": "inline", "must_understand": false, "metadata": {}});
        node.insert("consolidated_metadata".to_owned(), empty);
    }
    metadata.insert(below.to_owned(), Value::Object(node));
}

/// Sets or removes a member and leaves the others in their order.
fn put(members: &mut Map<String, Value>, name: String, value: Option<Map<String, Value>>) {
    match value {
        Some(value) => _ = members.insert(name, Value::Object(value)),
        None => _ = members.shift_remove(&name),
    }
}
