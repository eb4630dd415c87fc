//! Errors of nodes and hierarchies.

use array::NodeError;
use meta::{
    NodePath,
    convert::{Loss, Unconvertible},
    documents::PatchError,
    zom::{Violation, ZomError},
};
use wire::{
    etag, node,
    problem::{Members, Problem, ProblemType},
    query::{OF_NODE_POST, TARGET},
};

use super::{ApiError, path_members};

impl From<NodeError> for ApiError {
    fn from(error: NodeError) -> Self {
        let detail = error.to_string();
        let (kind, members) = match error {
            NodeError::Array(error) => return error.into(),
            NodeError::Store(error) => return error.into(),
            NodeError::Change(error) => return error.into(),
            NodeError::TooManyNodes { limit } => return too_many_nodes(limit, detail),
            NodeError::Differs { path, differences } => {
                let differences = differences.iter().map(Into::into).collect();
                (ProblemType::NodeConflict, Members { differences, ..path_members(&path) })
            }
            NodeError::StrayKeys { path, key } => {
                (ProblemType::StrayKeys, Members { key: Some(key.to_string()), ..path_members(&path) })
            }
            NodeError::PreconditionFailed { path, current } => {
                (ProblemType::PreconditionFailed, Members { current: current.map(etag::text), ..path_members(&path) })
            }
            NodeError::BelowArray { path, array } => {
                (ProblemType::ParentIsArray, Members { array: Some(array.to_string()), ..path_members(&path) })
            }
            NodeError::Name { path, source } => {
                let dialect = Some(source.dialect.to_string());
                (ProblemType::InvalidNodeName, Members { dialect, ..path_members(&path) })
            }
            NodeError::OtherDialect { path, found } => {
                (ProblemType::DialectConflict, Members { dialect: Some(found.to_string()), ..path_members(&path) })
            }
            NodeError::Lossy { dialect, losses } => {
                let (dialect, losses) = (Some(dialect.to_string()), losses.into_iter().map(loss).collect());
                (ProblemType::LossyConversion, Members { dialect, losses, ..Members::default() })
            }
            NodeError::Inconvertible { path, source: Unconvertible { dialect, pointer, .. } } => {
                let (dialect, pointer) = (Some(dialect.to_string()), Some(pointer));
                (ProblemType::Unconvertible, Members { dialect, pointer, ..path_members(&path) })
            }
            // The client can pass another target.
            NodeError::NotInPlace { .. } => {
                let known = Some(OF_NODE_POST.iter().map(|&name| name.to_owned()).collect());
                let parameter = Some(TARGET.to_owned());
                (ProblemType::MissingParameter, Members { parameter, known, ..Members::default() })
            }
            NodeError::TooManyChanges { changes, limit } => {
                let (changes, limit) = (Some(changes), u64::try_from(limit).ok());
                (ProblemType::TooManyChanges, Members { changes, limit, ..Members::default() })
            }
        };
        Self::new(Problem::new(kind).with_detail(detail).with_members(members))
    }
}

impl From<PatchError> for ApiError {
    fn from(error: PatchError) -> Self {
        let detail = error.to_string();
        let members = Members { pointer: Some(error.pointer), ..Members::default() };
        Self::new(Problem::new(ProblemType::InvalidPatch).with_detail(detail).with_members(members))
    }
}

impl From<ZomError> for ApiError {
    fn from(error: ZomError) -> Self {
        let detail = error.to_string();
        let violations: Vec<node::Violation> = match error {
            ZomError::TooManyNodes { limit } => return too_many_nodes(limit, detail),
            // Reported as a violation at the root, like those of the schema.
            ZomError::NotJson(_) => vec![(&Violation { pointer: String::new(), reason: detail.clone() }).into()],
            ZomError::Invalid { violations } => violations.iter().map(Into::into).collect(),
        };
        let pointer = violations.first().map(|first| first.pointer.clone());
        let members = Members { pointer, violations, ..Members::default() };
        Self::new(Problem::new(ProblemType::InvalidZom).with_detail(detail).with_members(members))
    }
}

fn too_many_nodes(limit: usize, detail: String) -> ApiError {
    let members = Members { limit: u64::try_from(limit).ok(), ..Members::default() };
    ApiError::new(Problem::new(ProblemType::TooManyNodes).with_detail(detail).with_members(members))
}

fn loss((path, Loss { pointer, property }): (NodePath, Loss)) -> node::Loss {
    node::Loss { path: path.to_string(), pointer, property }
}
