//! Node documents in one form, so that two that say the same are the same.
//!
//! What is not said is put in as its default, what may be written in two ways is written in one. Members that nobody here knows stay as they are, and so does
//! what cannot be read.

use serde_json::{Map, Value, json};

use super::{ZomFormat, with_attributes};
use crate::{
    Dialect,
    codecs::CodecSpec,
    data_type::{self, V2Context},
    documents::{
        json::{description, into_object, with_description},
        v2, v3,
        write::strip_consolidated,
    },
    json::Json,
};

/// An array's node document in one form. What cannot be read stays as it is.
pub(super) fn array(format: ZomFormat, document: &Json) -> Json {
    let known = match format {
        ZomFormat::V2 => v2::ARRAY_MEMBERS,
        ZomFormat::V3 => v3::ARRAY_MEMBERS,
    };
    canonicalize(document, known, |described| match format {
        ZomFormat::V2 => array_v2(described),
        ZomFormat::V3 => array_v3(described),
    })
}

/// A group's node document in one form.
pub(super) fn group(format: ZomFormat, document: &Json) -> Json {
    match format {
        ZomFormat::V2 => with_attributes(document),
        ZomFormat::V3 => canonicalize(&strip_consolidated(document), &["extensions"], extensions),
    }
}

fn canonicalize(document: &Json, known: &[&str], normalize: impl FnOnce(&mut Map<String, Value>)) -> Json {
    let document = with_attributes(document);
    let Ok(before) = description(&document, known).map(into_object) else { return document };
    let mut after = before.clone();
    normalize(&mut after);
    with_description(&document, &before, &after)
}

fn array_v2(document: &mut Map<String, Value>) {
    set_default(document, "dimension_separator", json!("."));
    set_default(document, "filters", json!([]));
    let first = document.get("filters").and_then(|filters| filters.get(0)).and_then(numcodecs);
    let context = V2Context { object_codec: first.as_ref() };
    let Some(Ok((data_type, order))) = document.get("dtype").map(|dtype| data_type::parse_v2(dtype, context)) else {
        return;
    };
    if let Ok(dtype) = data_type.to_v2(&order) {
        document.insert("dtype".to_owned(), dtype);
    }
    // Each reader defines the meaning of `null`.
    let fill_value = document.get("fill_value").filter(|fill_value| !fill_value.is_null());
    let fill_value_element =
        fill_value.and_then(|fill_value| data_type.stored_fill_value(fill_value, Dialect::V2, &order).ok());
    if let Some(Ok(fill_value)) =
        fill_value_element.map(|fill_value_element| data_type.fill_value_json(&fill_value_element, Dialect::V2))
    {
        document.insert("fill_value".to_owned(), fill_value);
    }
}

/// A filter, if it is written well.
fn numcodecs(filter: &Value) -> Option<CodecSpec> {
    let mut configuration = filter.as_object()?.clone();
    let id = configuration.shift_remove("id")?;
    Some(CodecSpec::numcodecs(id.as_str()?, configuration))
}

fn array_v3(document: &mut Map<String, Value>) {
    set_default(document, "storage_transformers", json!([]));
    if document.get("dimension_names").and_then(Value::as_array).is_some_and(|names| names.iter().all(Value::is_null)) {
        document.shift_remove("dimension_names");
    }
    set_default(document, "dimension_names", Value::Null);
    extensions(document);
    fill_value_element(document);
    if let Some(grid) = document.get_mut("chunk_grid") {
        expand_name(grid);
    }
    if let Some(encoding) = document.get_mut("chunk_key_encoding") {
        chunk_key_encoding(encoding);
    }
    document.get_mut("codecs").into_iter().for_each(codecs);
}

/// The data type, and a fill value of it.
fn fill_value_element(document: &mut Map<String, Value>) {
    let Some(Ok(data_type)) = document.get("data_type").map(data_type::parse_v3) else { return };
    document.insert("data_type".to_owned(), data_type.to_v3());
    let fill_value_element = document.get("fill_value").map(|fill_value| data_type.fill_value(fill_value, Dialect::V3));
    let Some(Ok(fill_value_element)) = fill_value_element else { return };
    if let Ok(fill_value) = data_type.fill_value_json(&fill_value_element, Dialect::V3) {
        document.insert("fill_value".to_owned(), fill_value);
    }
}

fn extensions(document: &mut Map<String, Value>) {
    for extension in document.get_mut("extensions").and_then(Value::as_array_mut).into_iter().flatten() {
        expand_name(extension);
        if let Some(extension) = extension.as_object_mut() {
            set_default(extension, "must_understand", json!(true));
        }
    }
}

fn chunk_key_encoding(encoding: &mut Value) {
    expand_name(encoding);
    let default = match encoding.get("name").and_then(Value::as_str) {
        Some("default") => "/",
        Some("v2") => ".",
        _ => return,
    };
    if let Some(configuration) = encoding.get_mut("configuration").and_then(Value::as_object_mut) {
        set_default(configuration, "separator", json!(default));
    }
}

fn codecs(list: &mut Value) {
    for codec in list.as_array_mut().into_iter().flatten() {
        expand_name(codec);
        let Some(configuration) = codec.get_mut("configuration") else { continue };
        // The chains within a shard.
        for inner in ["codecs", "index_codecs"] {
            configuration.get_mut(inner).into_iter().for_each(codecs);
        }
    }
}

/// A name as an object with a configuration.
fn expand_name(value: &mut Value) {
    match value {
        Value::String(name) => *value = json!({"name": name, "configuration": {}}),
        Value::Object(object) => set_default(object, "configuration", json!({})),
        _ => {}
    }
}

/// Puts in a default where nothing is said.
fn set_default(object: &mut Map<String, Value>, name: &str, default: Value) {
    let value = object.entry(name).or_insert(Value::Null);
    if value.is_null() {
        *value = default;
    }
}
