//! Differences between an existing tree and a ZOM.

use std::collections::HashMap;

use meta::{
    NodePath,
    json::Json,
    zom::{Difference, Node, Zom},
};
use operations::BrokenNode;
use serde_json::json;

use super::describe::{Unrepresented, to_zom};
use crate::{
    metadata::{error::NodeError, tree::NodeTree},
    node::broken::Broken,
};

/// The differences between an existing tree and a ZOM, at most `limit`. A broken node differs from anything.
pub(crate) fn differences(declared: &Zom, found: &NodeTree, limit: usize) -> Result<Vec<Difference>, NodeError> {
    if let Some(broken) = &found.broken {
        let expected = Some(declared.root.document().clone());
        return Ok(vec![Difference { pointer: String::new(), expected, actual: Some(problem(broken)) }]);
    }
    let (top, version) = (found.path.clone(), declared.format);
    let mut unrepresented = Unrepresented::default();
    let found = Zom { format: version, root: to_zom(found, version, &mut unrepresented)? };
    let mut differences = Zom::differences(declared, &found, limit);
    add_broken(&mut differences, declared, &top, &unrepresented.broken, limit);
    Ok(differences)
}

fn add_broken(differences: &mut Vec<Difference>, declared: &Zom, top: &NodePath, broken: &[BrokenNode], limit: usize) {
    let mut indices: HashMap<String, usize> = HashMap::new();
    if !broken.is_empty() {
        indices.extend(differences.iter().enumerate().map(|(at, difference)| (difference.pointer.clone(), at)));
    }
    for node in broken {
        let place = node.path.relative_to(top).and_then(|below| place_of(&declared.root, below));
        let Some((pointer, declared_node)) = place else { continue };
        let found = Some(problem(&Broken::of(node)));
        if let Some(difference) = indices.get(&pointer).and_then(|at| differences.get_mut(*at)) {
            difference.actual = found;
        } else if differences.len() < limit {
            let declared = declared_node.map(|node| node.document().clone());
            differences.push(Difference { pointer, expected: declared, actual: found });
        }
    }
}

/// The JSON pointer to the node at a path below another, and the node, if the ZOM has it. `None` if the ZOM does not
/// list the members of the group that would contain it.
fn place_of<'z>(root: &'z Node, below: &str) -> Option<(String, Option<&'z Node>)> {
    let (mut at, mut pointer) = (Some(root), String::new());
    for name in below.split('/') {
        pointer.push_str("/members/");
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        at = match at {
            Some(Node::Group(group)) => group.members.as_ref()?.get(name),
            Some(Node::Array(_)) | None => None,
        };
    }
    Some((pointer, at))
}

/// The JSON value that stands for a broken node in a difference.
fn problem(Broken { key, reason }: &Broken) -> Json {
    Json::compact(&json!({"problem": {"key": key.as_str(), "reason": reason}}))
}
