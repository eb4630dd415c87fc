//! Rejected changes of nodes as problem documents, in both directions.

use zarrd_meta::NodePath;
use zarrd_operations::NodeRejection;
use zarrd_store::Key;

use crate::{
    etag, node,
    problem::{Members, Problem, ProblemType},
};

/// The problem document of a rejection.
pub fn to_problem(rejection: &NodeRejection) -> Problem {
    let at = |path: &NodePath| Members { path: Some(path.to_string()), ..Members::default() };
    let (kind, members) = match rejection {
        NodeRejection::NodeConflict { path, differences } => {
            let differences = differences.iter().map(Into::into).collect();
            (ProblemType::NodeConflict, Members { differences, ..at(path) })
        }
        NodeRejection::StrayKeys { path, key } => {
            (ProblemType::StrayKeys, Members { key: Some(key.to_string()), ..at(path) })
        }
        NodeRejection::PreconditionFailed { path, current } => {
            (ProblemType::PreconditionFailed, Members { current: current.map(etag::text), ..at(path) })
        }
        NodeRejection::ParentIsArray { path, array } => {
            (ProblemType::ParentIsArray, Members { array: Some(array.to_string()), ..at(path) })
        }
        NodeRejection::DialectConflict { path, dialect } => {
            (ProblemType::DialectConflict, Members { dialect: Some(dialect.to_string()), ..at(path) })
        }
        NodeRejection::LossyConversion { dialect, losses } => {
            let (dialect, losses) = (Some(dialect.to_string()), node::render_losses(losses));
            (ProblemType::LossyConversion, Members { dialect, losses, ..Members::default() })
        }
        NodeRejection::TooManyNodes { limit } => {
            (ProblemType::TooManyNodes, Members { limit: Some(*limit), ..Members::default() })
        }
        NodeRejection::TooManyChanges { changes, limit } => {
            let (changes, limit) = (Some(*changes), Some(*limit));
            (ProblemType::TooManyChanges, Members { changes, limit, ..Members::default() })
        }
    };
    Problem::new(kind).with_detail(rejection.to_string()).with_members(members)
}

/// Parses the rejection in a problem document that answers a request for the node at `requested`, which stands for a
/// missing or invalid path. The path stands for such a stray key, and its parent for such an array. `None` for other
/// problem types, and if another member is missing or invalid.
pub fn from_problem(problem: &Problem, requested: &NodePath) -> Option<NodeRejection> {
    let Members { key, array, current, dialect, differences, losses, limit, changes, .. } = &problem.members;
    let path = || problem.members.node_path(requested);
    let dialect = || dialect.as_deref()?.parse().ok();
    Some(match problem.kind {
        ProblemType::NodeConflict => NodeRejection::NodeConflict {
            path: path(),
            differences: differences.iter().cloned().map(Into::into).collect(),
        },
        ProblemType::StrayKeys => {
            let (path, key) = (path(), key.as_deref().and_then(|key| Key::parse(key).ok()));
            NodeRejection::StrayKeys { key: key.or_else(|| Key::parse(path.relative()).ok())?, path }
        }
        ProblemType::PreconditionFailed => {
            NodeRejection::PreconditionFailed { path: path(), current: current.as_deref().and_then(etag::parse) }
        }
        ProblemType::ParentIsArray => {
            let (path, array) = (path(), array.as_deref().and_then(|array| NodePath::parse(array).ok()));
            NodeRejection::ParentIsArray { array: array.or_else(|| path.parent())?, path }
        }
        ProblemType::DialectConflict => NodeRejection::DialectConflict { path: path(), dialect: dialect()? },
        ProblemType::LossyConversion => {
            NodeRejection::LossyConversion { dialect: dialect()?, losses: node::parse_losses(losses).ok()? }
        }
        ProblemType::TooManyNodes => NodeRejection::TooManyNodes { limit: (*limit)? },
        ProblemType::TooManyChanges => NodeRejection::TooManyChanges { changes: (*changes)?, limit: (*limit)? },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zarrd_meta::{Dialect, convert::Loss, json::Json, zom::Difference};
    use zarrd_store::Version;

    use super::*;

    fn path(text: &str) -> NodePath {
        NodePath::parse(text).unwrap()
    }

    fn rejections() -> Vec<NodeRejection> {
        let difference =
            Difference { pointer: "/shape/1".into(), expected: Some(Json::compact(&json!(1))), actual: None };
        let loss = Loss { pointer: "/order".into(), property: "the order".into() };
        vec![
            NodeRejection::NodeConflict { path: path("/a"), differences: vec![difference] },
            NodeRejection::StrayKeys { path: path("/a"), key: Key::parse("a/c/0").unwrap() },
            NodeRejection::PreconditionFailed { path: path("/a"), current: Some(Version::from_u128(5)) },
            NodeRejection::PreconditionFailed { path: path("/"), current: None },
            NodeRejection::ParentIsArray { path: path("/a/b"), array: path("/a") },
            NodeRejection::DialectConflict { path: path("/a"), dialect: Dialect::Draft },
            NodeRejection::LossyConversion { dialect: Dialect::V2, losses: vec![(path("/a/b"), loss)] },
            NodeRejection::TooManyNodes { limit: 7 },
            NodeRejection::TooManyChanges { changes: 8, limit: 7 },
        ]
    }

    #[test]
    fn rejections_round_trip() {
        for rejection in rejections() {
            let json = to_problem(&rejection).to_json();
            let problem = Problem::from_json(&json).unwrap();
            assert_eq!(problem.detail, rejection.to_string());
            assert_eq!(from_problem(&problem, &path("/requested")), Some(rejection));
        }
    }

    #[test]
    fn missing_members_are_derived_from_the_path_or_there_is_no_rejection() {
        let requested = path("/requested/node");
        for rejection in rejections() {
            let problem = Problem { members: Members::default(), ..to_problem(&rejection) };
            let expected = match rejection {
                NodeRejection::NodeConflict { .. } => {
                    Some(NodeRejection::NodeConflict { path: requested.clone(), differences: Vec::new() })
                }
                NodeRejection::PreconditionFailed { .. } => {
                    Some(NodeRejection::PreconditionFailed { path: requested.clone(), current: None })
                }
                NodeRejection::StrayKeys { .. } => Some(NodeRejection::StrayKeys {
                    path: requested.clone(),
                    key: Key::parse("requested/node").unwrap(),
                }),
                NodeRejection::ParentIsArray { .. } => {
                    Some(NodeRejection::ParentIsArray { path: requested.clone(), array: path("/requested") })
                }
                NodeRejection::DialectConflict { .. }
                | NodeRejection::LossyConversion { .. }
                | NodeRejection::TooManyNodes { .. }
                | NodeRejection::TooManyChanges { .. } => None,
            };
            assert_eq!(from_problem(&problem, &requested), expected, "{rejection}");
        }
        assert_eq!(from_problem(&Problem::new(ProblemType::NoSuchNode), &requested), None);
    }

    #[test]
    fn stray_key_and_array_are_derived_from_the_named_path() {
        let named = |kind| {
            let members = Members { path: Some("/a/b".into()), ..Members::default() };
            from_problem(&Problem::new(kind).with_members(members), &path("/requested"))
        };
        let key = Key::parse("a/b").unwrap();
        assert_eq!(named(ProblemType::StrayKeys), Some(NodeRejection::StrayKeys { path: path("/a/b"), key }));
        let expected = NodeRejection::ParentIsArray { path: path("/a/b"), array: path("/a") };
        assert_eq!(named(ProblemType::ParentIsArray), Some(expected));
        for kind in [ProblemType::StrayKeys, ProblemType::ParentIsArray] {
            assert_eq!(from_problem(&Problem::new(kind), &NodePath::root()), None, "the root has neither");
        }
    }
}
