//! Parsing of documents, and extraction of the members that describe a node.

use bytes::Bytes;
use serde_json::{Map, Value};

use super::DocumentError;
use crate::{
    json::{Change, Json, MAX_DEPTH, ObjectEdit},
    limits::{MAX_DOCUMENT_MEMORY, MAX_DOCUMENT_SIZE},
    text::pointer_to,
};

/// The member with the user's attributes in a node document.
pub(crate) const ATTRIBUTES: &str = "attributes";

/// Parses a document: a JSON object of at most [`MAX_DOCUMENT_SIZE`] bytes, nested at most
/// [`MAX_DOCUMENT_DEPTH`](crate::json::MAX_DOCUMENT_DEPTH) levels deep.
pub(crate) fn read(bytes: impl Into<Bytes>) -> Result<Json, DocumentError> {
    read_up_to(MAX_DOCUMENT_SIZE, bytes.into())
}

/// As [`read`], for a document of at most `limit` bytes.
pub(crate) fn read_up_to(limit: usize, bytes: Bytes) -> Result<Json, DocumentError> {
    if bytes.len() > limit {
        return Err(DocumentError::TooLarge { size: bytes.len() });
    }
    let document = Json::parse_document(bytes).map_err(DocumentError::NotJson)?;
    if document.is_object() { Ok(document) } else { Err(DocumentError::NotAnObject) }
}

/// The members with these names except the attributes, as one object of at most [`MAX_DOCUMENT_MEMORY`] bytes.
pub(crate) fn description(document: &Json, names: &[&str]) -> Result<Value, DocumentError> {
    let mut description = Map::new();
    let mut memory = 0_usize;
    for member in document.member_slices() {
        let Some(name) = names.iter().find(|name| **name != ATTRIBUTES && member.is_named(name)) else { continue };
        let value = member.to_json();
        memory = memory.saturating_add(value.estimated_value_memory());
        if memory > MAX_DOCUMENT_MEMORY {
            return Err(DocumentError::TooMuchMemory);
        }
        if value.depth() > MAX_DEPTH {
            let reason = format!("is nested deeper than {MAX_DEPTH} levels");
            return Err(DocumentError::Invalid { pointer: pointer_to("", name), reason });
        }
        description.insert((*name).to_owned(), value.to_value().map_err(DocumentError::UnreadableValue)?);
    }
    Ok(Value::Object(description))
}

/// The members of a parsed object.
pub(crate) fn into_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Changes the [description] of a document from `before` to `after`; all other bytes are preserved.
pub(crate) fn with_description(document: &Json, before: &Map<String, Value>, after: &Map<String, Value>) -> Json {
    let mut edit = ObjectEdit::default();
    for (name, value) in after {
        if before.get(name) != Some(value) {
            edit.change(name, Change::Set(value.clone()));
        }
    }
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        edit.change(name, Change::Remove);
    }
    document.edited(&edit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn described(text: impl Into<Bytes>) -> Result<Value, DocumentError> {
        description(&read(text)?, &["a", "b", "attributes"])
    }

    #[test]
    fn invalid_documents_are_rejected() {
        for text in ["", "{} {}", "\u{fe}", "{\"a\": nan}"] {
            assert!(matches!(read(text), Err(DocumentError::NotJson(_))), "{text}");
        }
        assert!(matches!(read("[1]"), Err(DocumentError::NotAnObject)));
        let size = MAX_DOCUMENT_SIZE + 1;
        assert!(matches!(read(vec![b' '; size]), Err(DocumentError::TooLarge { size: found }) if found == size));
        let many = format!("{{\"a\":[{}0]}}", "0,".repeat(8 << 20));
        assert!(matches!(described(many), Err(DocumentError::TooMuchMemory)));
        let maps = format!("{{\"a\":[{}0]}}", "{\"\":0},".repeat(1 << 20));
        assert!(matches!(described(maps), Err(DocumentError::TooMuchMemory)));
        assert!(matches!(described("{\"a\": \"\\ud800\"}"), Err(DocumentError::UnreadableValue(_))));
    }

    #[test]
    fn attributes_and_unknown_members_are_not_parsed() {
        let text = format!(
            "{{\"b\": NaN, \"attributes\": [{}0], \"a\": 1, \"x\": \"\\ud800\", \"a\": 2}}",
            "{},".repeat(1 << 20)
        );
        assert_eq!(described(text).unwrap(), json!({"b": "NaN", "a": 2}));
    }

    proptest! {
        #[test]
        fn floats_are_read_exactly(float in any::<f64>().prop_filter("JSON has it", |float| float.is_finite())) {
            let value = described(format!("{{\"a\": {float:e}}}")).unwrap();
            prop_assert_eq!(value["a"].as_f64().unwrap().to_bits(), float.to_bits());
        }
    }
}
