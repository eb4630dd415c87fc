//! Conversion of groups.

use serde_json::{Value, json};

use super::{
    outcome::{Converted, Loss},
    source::{extensions, node_document, unknown_members},
};
use crate::{
    Dialect,
    documents::{GroupModel, members, v3, write},
    text::pointer_to,
};

/// Converts a group's document to another dialect; in its own dialect, returns its node document. Consolidated metadata
/// is removed.
pub fn group(model: &GroupModel, to: Dialect) -> Converted {
    if model.dialect == to {
        let document = match to {
            Dialect::V2 => write::join_v2(&model.document, &model.attributes),
            Dialect::V3 => write::strip_consolidated(&model.document),
            Dialect::Draft => model.document.clone(),
        };
        return Converted { document, losses: Vec::new() };
    }
    let known: &[&str] = match model.dialect {
        Dialect::V2 => &["zarr_format", "attributes"],
        Dialect::V3 => v3::GROUP_MEMBERS,
        Dialect::Draft => &["attributes", "extensions"],
    };
    let lost = |name: String| Loss {
        pointer: pointer_to("", &name),
        property: "a member that the specification does not name".to_owned(),
    };
    let mut losses: Vec<_> = unknown_members(&model.document, known).into_iter().map(lost).collect();
    let (converted, lost) = extensions(&model.extensions, to);
    losses.extend(lost);
    let mut members_of_document = match to {
        Dialect::V2 => members([("zarr_format", json!(2))]),
        Dialect::V3 => members([("zarr_format", json!(3)), ("node_type", json!("group"))]),
        Dialect::Draft => members([]),
    };
    members_of_document.insert("attributes".to_owned(), json!({}));
    if !converted.is_empty() {
        members_of_document.insert("extensions".to_owned(), Value::Array(converted));
    }
    Converted { document: node_document(members_of_document, model.attributes.clone()), losses }
}
