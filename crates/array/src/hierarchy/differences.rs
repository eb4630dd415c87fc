//! Differences between an existing tree and a declared one, which are compared node by node: as ZOMs, two trees of many
//! nodes would take most of a request's memory.

use std::collections::HashMap;

use serde_json::json;
use zarrd_meta::{
    NodePath,
    json::Json,
    zom::{Comparison, Difference, Group, Members, Node, ZomFormat},
};
use zarrd_operations::BrokenNode;

use super::describe::node_alone;
use crate::{
    error::ArrayError,
    metadata::{
        error::NodeError,
        tree::{NodeKind, NodeTree},
    },
    node::broken::Broken,
};

/// A declared node.
#[derive(Clone, Copy)]
pub(crate) enum Declared<'a> {
    /// As in the declaration.
    Zom(&'a Node),
    /// As it is planned. Implicit groups match any planned group.
    Planned(&'a NodeTree),
}

/// The differences between an existing tree and a declared one in a format, at most `limit`. A broken node differs from
/// anything.
pub(crate) fn differences(
    declared: Declared<'_>,
    format: ZomFormat,
    found: &NodeTree,
    limit: usize,
) -> Result<Vec<Difference>, NodeError> {
    if let Some(broken) = &found.broken {
        let expected = Some(declared.document(format)?);
        return Ok(vec![Difference { pointer: String::new(), expected, actual: Some(problem(broken)) }]);
    }
    node_alone(found, format)?;
    let mut broken = Vec::new();
    add_broken_members(&mut broken, found, format)?;
    let mut comparison = Comparison::new(format, limit);
    compare_nodes(&mut comparison, format, declared, found)?;
    let mut differences = comparison.into_differences();
    add_broken(&mut differences, (declared, format), &found.path, &broken, limit)?;
    Ok(differences)
}

impl<'a> Declared<'a> {
    /// The node without its members.
    fn alone(self, format: ZomFormat) -> Result<Node, NodeError> {
        match self {
            Self::Zom(node) => Ok(node.without_members()),
            Self::Planned(node) => node_alone(node, format),
        }
    }

    fn document(self, format: ZomFormat) -> Result<Json, NodeError> {
        Ok(self.alone(format)?.document().clone())
    }

    /// The names of its members; `None` if it makes no statement about them.
    fn names(self) -> Option<Vec<&'a str>> {
        fn names<T>(members: &Members<T>) -> Vec<&str> {
            members.keys().map(String::as_str).collect()
        }
        match self {
            Self::Zom(Node::Group(Group { members: Some(members), .. })) => Some(names(members)),
            Self::Planned(node) if node.kind == NodeKind::Group => node.members.as_ref().map(names),
            Self::Zom(_) | Self::Planned(_) => None,
        }
    }

    fn member(self, name: &str) -> Option<Self> {
        match self {
            Self::Zom(Node::Group(group)) => group.members.as_ref()?.get(name).map(Self::Zom),
            Self::Zom(Node::Array(_)) => None,
            Self::Planned(node) => node.members.as_ref()?.get(name).map(Self::Planned),
        }
    }

    fn is_group(self) -> bool {
        match self {
            Self::Zom(node) => matches!(node, Node::Group(_)),
            Self::Planned(node) => node.kind == NodeKind::Group,
        }
    }
}

fn compare_nodes(
    comparison: &mut Comparison,
    format: ZomFormat,
    declared: Declared<'_>,
    found: &NodeTree,
) -> Result<(), NodeError> {
    let is_any = matches!(declared, Declared::Planned(_)) && found.is_implicit() && declared.is_group();
    if !is_any {
        comparison.documents(&declared.alone(format)?, &node_alone(found, format)?);
    }
    let is_group = declared.is_group() && found.kind == NodeKind::Group;
    let Some(names) = declared.names().filter(|_| is_group) else { return Ok(()) };
    let undeclared = found.members.iter().flat_map(Members::keys).map(String::as_str);
    let undeclared = undeclared.filter(|name| declared.member(name).is_none());
    for name in names.into_iter().chain(undeclared) {
        if comparison.is_full() {
            return Ok(());
        }
        let found = found.members.as_ref().and_then(|members| members.get(name));
        comparison.member(name, |comparison| compare_members(comparison, format, declared.member(name), found))?;
    }
    Ok(())
}

fn compare_members(
    comparison: &mut Comparison,
    format: ZomFormat,
    declared: Option<Declared<'_>>,
    found: Option<&NodeTree>,
) -> Result<(), NodeError> {
    // A broken node is taken for missing.
    let alone = found.map(|found| member_alone(found, format)).transpose()?.and_then(Result::ok);
    match (declared, found.zip(alone)) {
        (Some(declared), Some((found, _))) => compare_nodes(comparison, format, declared, found)?,
        (None, None) => {}
        (declared, found) => {
            let declared = declared.map(|declared| declared.alone(format)).transpose()?;
            let found = found.map(|(_, node)| node);
            comparison.differ(declared.as_ref(), found.as_ref());
        }
    }
    Ok(())
}

/// A member of a tree without its own members, or the reason why it is broken.
fn member_alone(member: &NodeTree, format: ZomFormat) -> Result<Result<Node, Broken>, NodeError> {
    if let Some(broken) = &member.broken {
        return Ok(Err(Broken::clone(broken)));
    }
    match node_alone(member, format) {
        Ok(node) => Ok(Ok(node)),
        Err(NodeError::Array(ArrayError::Document { key, source })) => Ok(Err(Broken::new(&key, &source))),
        Err(error) => Err(error),
    }
}

/// Adds the broken nodes below a node, in the order of a walk. Nothing below a broken node counts.
fn add_broken_members(broken: &mut Vec<BrokenNode>, of: &NodeTree, format: ZomFormat) -> Result<(), NodeError> {
    for member in of.members.iter().flat_map(Members::values) {
        // Documents in the format's own dialect are taken as they are.
        let is_readable = member.broken.is_none() && member.dialect == format.dialect();
        match if is_readable { None } else { member_alone(member, format)?.err() } {
            Some(problem) => broken.push(problem.at(member.path.clone(), member.dialect)),
            None => add_broken_members(broken, member, format)?,
        }
    }
    Ok(())
}

fn add_broken(
    differences: &mut Vec<Difference>,
    (declared, format): (Declared<'_>, ZomFormat),
    top: &NodePath,
    broken: &[BrokenNode],
    limit: usize,
) -> Result<(), NodeError> {
    let mut indices: HashMap<String, usize> = HashMap::new();
    if !broken.is_empty() {
        indices.extend(differences.iter().enumerate().map(|(at, difference)| (difference.pointer.clone(), at)));
    }
    for node in broken {
        let place = node.path.relative_to(top).and_then(|below| place_of(declared, below));
        let Some((pointer, declared_node)) = place else { continue };
        let found = Some(problem(&Broken::of(node)));
        if let Some(difference) = indices.get(&pointer).and_then(|at| differences.get_mut(*at)) {
            difference.actual = found;
        } else if differences.len() < limit {
            let expected = declared_node.map(|node| node.document(format)).transpose()?;
            differences.push(Difference { pointer, expected, actual: found });
        }
    }
    Ok(())
}

/// The JSON pointer to the node at a path below another, and the node, if the declaration has it. `None` if it does not
/// list the members of the group that would contain it.
fn place_of<'z>(root: Declared<'z>, below: &str) -> Option<(String, Option<Declared<'z>>)> {
    let (mut at, mut pointer) = (Some(root), String::new());
    for name in below.split('/') {
        pointer.push_str("/members/");
        pointer.push_str(&escaped(name));
        at = match at.filter(|node| node.is_group()) {
            Some(group) => {
                group.names()?;
                group.member(name)
            }
            None => None,
        };
    }
    Some((pointer, at))
}

/// A name in a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The JSON value that stands for a broken node in a difference.
fn problem(Broken { key, reason }: &Broken) -> Json {
    Json::compact(&json!({"problem": {"key": key.as_str(), "reason": reason}}))
}
