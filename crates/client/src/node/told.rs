//! The structure that a server told, taken as it is told.
//!
//! What is stored may use codecs and data types that are not known here, and keeps the spelling that it was written with. So documents are
//! neither checked nor normalised, as [`Zom::parse`] does with what is to be declared.

use meta::{
    json::{Json, Member},
    zom::{Group, Node, Zom, ZomFormat},
};

use crate::failure::Fault;

const MEMBERS: &str = "members";

/// How many groups lie in each other, at the most. The stack goes deeper.
const MAX_GROUPS: usize = 256;

/// The ZOM that a server told as JSON.
pub(super) fn zom(told: &Json) -> Result<Zom, Fault> {
    let version = match told.get("zarr_format").as_ref().map(Json::as_str) {
        Some("2") => ZomFormat::V2,
        Some("3") => ZomFormat::V3,
        _ => return Err(Fault::protocol("a structure came that is of neither v2 nor v3")),
    };
    Ok(Zom { format: version, root: node(told, MAX_GROUPS)? })
}

/// A node, below which are so many groups in each other.
fn node(told: &Json, groups: usize) -> Result<Node, Fault> {
    if !told.is_object() {
        return Err(Fault::protocol("a node came that is no object"));
    }
    let is_array = match told.get("node_type") {
        Some(node_type) => node_type.to_text().as_deref() == Some("array"),
        None => told.get("shape").is_some(),
    };
    if is_array {
        return Ok(Node::Array(told.clone()));
    }
    let members = match told.get(MEMBERS) {
        None => None,
        Some(members) if members.is_null() => None,
        Some(members) if members.is_object() => {
            let too_deep = || Fault::protocol("a structure came with too many groups in each other");
            let below = groups.checked_sub(1).ok_or_else(too_deep)?;
            let member = |member: Member| Ok((member.name().unwrap_or_default(), node(&member.value, below)?));
            Some(members.members().map(member).collect::<Result<_, Fault>>()?)
        }
        Some(_) => return Err(Fault::protocol("the members of a group are no object")),
    };
    Ok(Node::Group(Group { document: unescaped(told), members }))
}

/// The document of a group without its nodes. The members of the document that are called `members`, with any number of underscores before, lose the one that told them
/// apart from the nodes.
fn unescaped(told: &Json) -> Json {
    let members: Vec<(Json, Json)> = told
        .members()
        .filter(|member| !member.is_named(MEMBERS))
        .map(|member| (original_name(&member).unwrap_or_else(|| member.quoted_name().clone()), member.value))
        .collect();
    Json::from_members(members.iter().map(|(name, value)| (name, value)))
}

fn original_name(member: &Member) -> Option<Json> {
    let name = member.name()?;
    let rest = name.strip_prefix('_').filter(|rest| rest.trim_start_matches('_') == MEMBERS)?;
    Some(Json::string(rest))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn zom(told: Value) -> Result<Zom, Fault> {
        super::zom(&Json::compact(&told))
    }

    #[test]
    fn documents_stay_as_they_are_told() {
        let array =
            json!({"zarr_format": 3, "node_type": "array", "shape": [1], "data_type": "|u1", "codecs": ["odd"]});
        let told = json!({"zarr_format": 3, "node_type": "group", "_members": 1, "__members": 2, "_other": 3, "members": {
            "a": array, "g": {"zarr_format": 3, "node_type": "group"}, "none": {"zarr_format": 3, "node_type": "group", "members": {}},
        }});
        let Zom { format: ZomFormat::V3, root: Node::Group(group) } = zom(told).unwrap() else { panic!() };
        let document = json!({"zarr_format": 3, "node_type": "group", "members": 1, "_members": 2, "_other": 3});
        assert_eq!(group.document, document);
        let members = group.members.unwrap();
        assert_eq!(*members["a"].document(), array);
        assert!(matches!(&members["g"], Node::Group(Group { members: None, .. })));
        assert!(matches!(&members["none"], Node::Group(Group { members: Some(none), .. }) if none.is_empty()));
    }

    #[test]
    fn arrays_and_groups_of_v2() {
        let told = json!({"zarr_format": 2, "members": {"a": {"zarr_format": 2, "shape": [], "attributes": {"x": 1}}}});
        let Zom { format: ZomFormat::V2, root: Node::Group(group) } = zom(told).unwrap() else { panic!() };
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
