//! The structure that a server told, taken as it is told.
//!
//! What is stored may use codecs and data types that are not known here, and keeps the spelling that it was written with. So documents are
//! neither checked nor normalised, as [`Zom::parse`] does with what is to be declared.

use std::collections::BTreeMap;

use meta::zom::{Group, Node, Version, Zom};
use serde_json::{Map, Value};

use crate::failure::Fault;

const MEMBERS: &str = "members";

/// The ZOM that a server told as JSON.
pub(super) fn zom(told: Value) -> Result<Zom, Fault> {
    let version = match told.get("zarr_format").and_then(Value::as_u64) {
        Some(2) => Version::V2,
        Some(3) => Version::V3,
        _ => return Err(Fault::protocol("a structure came that is of neither v2 nor v3")),
    };
    Ok(Zom { version, root: node(told)? })
}

/// JSON is not parsed deeper than the stack goes.
fn node(told: Value) -> Result<Node, Fault> {
    let Value::Object(mut document) = told else { return Err(Fault::protocol("a node came that is no object")) };
    let is_array = document.get("node_type").map_or(document.contains_key("shape"), |node_type| node_type == "array");
    if is_array {
        return Ok(Node::Array(document));
    }
    let members = match document.remove(MEMBERS) {
        None | Some(Value::Null) => None,
        Some(Value::Object(members)) => Some(
            members
                .into_iter()
                .map(|(name, told)| Ok((name, node(told)?)))
                .collect::<Result<BTreeMap<_, _>, Fault>>()?,
        ),
        Some(_) => return Err(Fault::protocol("the members of a group are no object")),
    };
    Ok(Node::Group(Group { document: unescaped(document), members }))
}

/// Gives the members of the document that are called `members`, with any number of underscores before, back the one that told them apart from
/// the nodes.
fn unescaped(document: Map<String, Value>) -> Map<String, Value> {
    let name = |name: String| match name.strip_prefix('_') {
        Some(rest) if rest.trim_start_matches('_') == MEMBERS => rest.to_owned(),
        _ => name,
    };
    document.into_iter().map(|(told, value)| (name(told), value)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_stay_as_they_are_told() {
        let array =
            json!({"zarr_format": 3, "node_type": "array", "shape": [1], "data_type": "|u1", "codecs": ["odd"]});
        let told = json!({"zarr_format": 3, "node_type": "group", "_members": 1, "__members": 2, "_other": 3, "members": {
            "a": array, "g": {"zarr_format": 3, "node_type": "group"}, "none": {"zarr_format": 3, "node_type": "group", "members": {}},
        }});
        let Zom { version: Version::V3, root: Node::Group(group) } = zom(told).unwrap() else { panic!() };
        let document = json!({"zarr_format": 3, "node_type": "group", "members": 1, "_members": 2, "_other": 3});
        assert_eq!(Value::Object(group.document), document);
        let members = group.members.unwrap();
        assert_eq!(Value::Object(members["a"].document().clone()), array);
        assert!(matches!(&members["g"], Node::Group(Group { members: None, .. })));
        assert!(matches!(&members["none"], Node::Group(Group { members: Some(none), .. }) if none.is_empty()));
    }

    #[test]
    fn arrays_and_groups_of_v2() {
        let told = json!({"zarr_format": 2, "members": {"a": {"zarr_format": 2, "shape": [], "attributes": {"x": 1}}}});
        let Zom { version: Version::V2, root: Node::Group(group) } = zom(told).unwrap() else { panic!() };
        assert!(matches!(&group.members.unwrap()["a"], Node::Array(_)));
    }

    #[test]
    fn what_is_no_structure() {
        for told in [json!(1), json!({}), json!({"zarr_format": 4}), json!({"zarr_format": 3, "members": []})] {
            assert!(matches!(zom(told.clone()), Err(Fault::Protocol { .. })), "{told}");
        }
        assert!(zom(json!({"zarr_format": 3, "members": {"a": 1}})).is_err());
    }
}
