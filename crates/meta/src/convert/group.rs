//! The documents of groups.

use serde_json::{Value, json};

use super::{
    Converted, Loss,
    source::{extensions, unknown},
};
use crate::{
    Dialect,
    documents::{GroupModel, members, v3, write},
    text::pointer_to,
};

/// The document of a group in another dialect, without consolidated metadata; in its own, its node document without it.
pub fn group(model: &GroupModel, to: Dialect) -> Converted {
    if model.dialect == to {
        let mut document = match to {
            Dialect::V2 => write::join_v2(&model.document, &model.attributes),
            Dialect::V3 | Dialect::Draft => model.document.clone(),
        };
        if to == Dialect::V3 {
            document.shift_remove("consolidated_metadata");
        }
        return Converted { document, losses: Vec::new() };
    }
    let known: &[&str] = match model.dialect {
        Dialect::V2 => &["zarr_format", "attributes"],
        Dialect::V3 => v3::GROUP_MEMBERS,
        Dialect::Draft => &["attributes", "extensions"],
    };
    let lost = |name: String| Loss {
        pointer: pointer_to("", &name),
        what: "a member that the specification does not name".to_owned(),
    };
    let mut losses: Vec<_> = unknown(&model.document, known).into_iter().map(lost).collect();
    let (kept, lost) = extensions(&model.extensions, to);
    losses.extend(lost);
    let mut document = match to {
        Dialect::V2 => members([("zarr_format", json!(2))]),
        Dialect::V3 => members([("zarr_format", json!(3)), ("node_type", json!("group"))]),
        Dialect::Draft => members([]),
    };
    document.insert("attributes".to_owned(), Value::Object(model.attributes.clone()));
    if !kept.is_empty() {
        document.insert("extensions".to_owned(), Value::Array(kept));
    }
    Converted { document, losses }
}
