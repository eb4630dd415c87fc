//! Errors of nodes and hierarchies.

use zarrd_array::NodeError;
use zarrd_meta::{
    convert::Unconvertible,
    documents::PatchError,
    limits::MAX_DOCUMENT_SIZE,
    zom::{Violation, ZomError},
};
use zarrd_operations::NodeRejection;
use zarrd_wire::{
    node,
    problem::{Members, Problem, ProblemType},
    query::{NODE_POST_PARAMETERS, TARGET},
    rejection,
};

use super::{ApiError, path_members, unencodable_chunk};

impl From<NodeError> for ApiError {
    fn from(error: NodeError) -> Self {
        let detail = error.to_string();
        let (kind, members) = match error {
            NodeError::Array(error) => return error.into(),
            NodeError::Store(error) => return error.into(),
            NodeError::Change(error) => return error.into(),
            NodeError::Encode { key, source } => return unencodable_chunk(&key, &source),
            NodeError::Rejected(rejection) => return Self::new(rejection::to_problem(&rejection)),
            NodeError::Name { path, source } => {
                let dialect = Some(source.dialect.to_string());
                (ProblemType::InvalidNodeName, Members { dialect, ..path_members(&path) })
            }
            NodeError::Unconvertible { path, source: Unconvertible { dialect, pointer, .. }, .. } => {
                let (dialect, pointer) = (Some(dialect.to_string()), Some(pointer));
                (ProblemType::Unconvertible, Members { dialect, pointer, ..path_members(&path) })
            }
            NodeError::DocumentTooLarge { key, size } => {
                let (size, limit) = (Some(size as u64), Some(MAX_DOCUMENT_SIZE as u64));
                (ProblemType::ValueTooLarge, Members { key: Some(key.to_string()), size, limit, ..Members::default() })
            }
            NodeError::PartlyErased { path, source, .. } => {
                return Self::partly(ProblemType::PartlyErased, path_members(&path), detail, source);
            }
            // The client can pass another target.
            NodeError::NotInPlace { .. } => {
                let known = Some(NODE_POST_PARAMETERS.iter().map(|&name| name.to_owned()).collect());
                let parameter = Some(TARGET.to_owned());
                (ProblemType::MissingParameter, Members { parameter, known, ..Members::default() })
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
            ZomError::TooManyNodes { limit } => {
                let rejection = NodeRejection::TooManyNodes { limit: limit as u64 };
                return Self::new(rejection::to_problem(&rejection));
            }
            // Reported as a violation at the root, like those of the schema.
            ZomError::NotJson(_) => vec![(&Violation { pointer: String::new(), reason: detail.clone() }).into()],
            ZomError::Invalid { violations } => violations.iter().map(Into::into).collect(),
        };
        let pointer = violations.first().map(|first| first.pointer.clone());
        let members = Members { pointer, violations, ..Members::default() };
        Self::new(Problem::new(ProblemType::InvalidZom).with_detail(detail).with_members(members))
    }
}
