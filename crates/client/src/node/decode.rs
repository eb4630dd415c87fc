//! Decoding of hierarchies in responses.
//!
//! Stored metadata may use codecs and data types that this client does not know, and keeps its spelling. Documents are
//! therefore neither checked nor normalized, unlike by [`Zom::parse`], which parses hierarchies to be declared.

use zarrd_meta::{
    json::{Json, Member},
    zom::{Group, Node, Zom, ZomFormat},
};

use crate::error::RequestError;

const MEMBERS: &str = "members";

/// Maximum depth of nested groups, well within the stack.
const MAX_DEPTH: usize = 256;

/// Decodes a ZOM from the JSON of a response.
pub(super) fn zom(json: &Json) -> Result<Zom, RequestError> {
    let format = match json.get("zarr_format").as_ref().map(Json::as_str) {
        Some("2") => ZomFormat::V2,
        Some("3") => ZomFormat::V3,
        _ => return Err(RequestError::protocol("a hierarchy whose zarr_format is neither 2 nor 3")),
    };
    Ok(Zom { format, root: node(json, MAX_DEPTH)? })
}

/// Decodes a node with at most `depth` levels of nested groups.
fn node(json: &Json, depth: usize) -> Result<Node, RequestError> {
    if !json.is_object() {
        return Err(RequestError::protocol("a node that is not a JSON object"));
    }
    let is_array = match json.get("node_type") {
        Some(node_type) => node_type.to_text().as_deref() == Some("array"),
        None => json.get("shape").is_some(),
    };
    if is_array {
        return Ok(Node::Array(json.clone()));
    }
    let members = match json.get(MEMBERS) {
        None => None,
        Some(members) if members.is_null() => None,
        Some(members) if members.is_object() => {
            let too_deep = || RequestError::protocol(format!("groups nested deeper than {MAX_DEPTH} levels"));
            let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
            let member = |member: Member| Ok((member.name().unwrap_or_default(), node(&member.value, depth)?));
            Some(members.members().map(member).collect::<Result<_, RequestError>>()?)
        }
        Some(_) => return Err(RequestError::protocol("a group whose members are not a JSON object")),
    };
    Ok(Node::Group(Group { document: document(json), members }))
}

/// The document of a group without its child nodes. Names in the document that would collide with `members` are escaped
/// by an additional underscore, which is removed.
fn document(json: &Json) -> Json {
    let members: Vec<(Json, Json)> = json
        .members()
        .filter(|member| !member.is_named(MEMBERS))
        .map(|member| (unescaped_name(&member).unwrap_or_else(|| member.quoted_name().clone()), member.value))
        .collect();
    Json::from_members(members.iter().map(|(name, value)| (name, value)))
}

fn unescaped_name(member: &Member) -> Option<Json> {
    let name = member.name()?;
    let rest = name.strip_prefix('_').filter(|rest| rest.trim_start_matches('_') == MEMBERS)?;
    Some(Json::string(rest))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn zom(json: Value) -> Result<Zom, RequestError> {
        super::zom(&Json::compact(&json))
    }

    #[test]
    fn documents_are_not_normalized() {
        let array =
            json!({"zarr_format": 3, "node_type": "array", "shape": [1], "data_type": "|u1", "codecs": ["odd"]});
        let json = json!({"zarr_format": 3, "node_type": "group", "_members": 1, "__members": 2, "_other": 3, "members": {
            "a": array, "g": {"zarr_format": 3, "node_type": "group"}, "none": {"zarr_format": 3, "node_type": "group", "members": {}},
        }});
        let Zom { format: ZomFormat::V3, root: Node::Group(group) } = zom(json).unwrap() else { panic!() };
        let document = json!({"zarr_format": 3, "node_type": "group", "members": 1, "_members": 2, "_other": 3});
        assert_eq!(group.document, document);
        let members = group.members.unwrap();
        assert_eq!(*members.get("a").unwrap().document(), array);
        assert!(matches!(members.get("g").unwrap(), Node::Group(Group { members: None, .. })));
        assert!(
            matches!(members.get("none").unwrap(), Node::Group(Group { members: Some(members), .. }) if members.is_empty())
        );
    }

    #[test]
    fn v2_arrays_have_a_shape() {
        let json = json!({"zarr_format": 2, "members": {"a": {"zarr_format": 2, "shape": [], "attributes": {"x": 1}}}});
        let Zom { format: ZomFormat::V2, root: Node::Group(group) } = zom(json).unwrap() else { panic!() };
        assert!(matches!(group.members.unwrap().get("a").unwrap(), Node::Array(_)));
    }

    #[test]
    fn invalid_hierarchies_are_an_error() {
        for json in [json!(1), json!({}), json!({"zarr_format": 4}), json!({"zarr_format": 3, "members": []})] {
            assert!(matches!(zom(json.clone()), Err(RequestError::Protocol { .. })), "{json}");
        }
        assert!(zom(json!({"zarr_format": 3, "members": {"a": 1}})).is_err());
    }
}
