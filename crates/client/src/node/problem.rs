//! Problem documents as errors, the reverse of what the server does.

use meta::{NodePath, convert::Loss, zom::Violation};
use reqwest::StatusCode;
use wire::{
    etag,
    problem::{Members, Problem, ProblemType},
    query::TARGET,
};

use super::NodeError;
use crate::{answer::Refusal, failure::Failure};

/// The failure that a refusal of a request for the node at `path` stands for.
pub(super) fn into_failure(mut refusal: Refusal, path: &NodePath) -> Failure<NodeError> {
    let (knowledge, retry_after) = (refusal.knowledge(), refusal.retry_after);
    let error = match refusal.problem.take() {
        Some(problem) => of_problem(&refusal, problem, path),
        None => of_status(&refusal, path),
    };
    Failure { error, knowledge, retry_after }
}

/// Every type is named, so that a new one has to be thought of here.
fn of_problem(refusal: &Refusal, problem: Problem, asked: &NodePath) -> NodeError {
    let detail = problem.said().to_owned();
    let Problem { kind, members, .. } = problem;
    let path = members.path.as_deref().and_then(|path| NodePath::parse(path).ok()).unwrap_or_else(|| asked.clone());
    match (kind, members.limit) {
        (ProblemType::NoSuchNode, _) => NodeError::NoSuchNode { path },
        (ProblemType::NotAnArray, _) => NodeError::NotAnArray { path },
        (ProblemType::TooManyNodes, Some(limit)) => NodeError::TooManyNodes { limit },
        (ProblemType::InvalidZom, _) => NodeError::InvalidZom { detail, violations: violations(members) },
        (ProblemType::InvalidNodeName, _) => NodeError::InvalidName { path, detail },
        (ProblemType::InvalidPatch, _) => NodeError::InvalidPatch { detail, pointer: members.pointer },
        (ProblemType::NodeConflict, _) => {
            let differences = members.differences.into_iter().map(Into::into).collect();
            NodeError::Differs { path, differences }
        }
        (ProblemType::StrayKeys, _) => NodeError::StrayKeys { path, key: members.key },
        (ProblemType::PreconditionFailed, _) => {
            NodeError::PreconditionFailed { path, current: members.current.as_deref().and_then(etag::parse) }
        }
        (ProblemType::ParentIsArray, _) => {
            let array = members.array.as_deref().and_then(|array| NodePath::parse(array).ok());
            NodeError::BelowArray { path, array }
        }
        (ProblemType::DialectConflict, _) => {
            NodeError::OtherDialect { path, dialect: members.dialect.and_then(|name| name.parse().ok()) }
        }
        (ProblemType::LossyConversion, _) => NodeError::Lossy { losses: losses(members, &path) },
        (ProblemType::Unconvertible, _) => NodeError::Inconvertible { path, pointer: members.pointer, detail },
        (ProblemType::MissingParameter, _) if members.parameter.as_deref() == Some(TARGET) => {
            NodeError::NotInPlace { detail }
        }
        (ProblemType::TooManyChanges, Some(limit)) => match members.changes {
            Some(changes) => NodeError::TooManyChanges { changes, limit },
            None => remote(refusal, detail),
        },
        (ProblemType::BodyTooLarge, Some(limit)) => NodeError::RequestTooLarge { limit },
        (ProblemType::UnsupportedNode, _) => {
            NodeError::Unsupported { path, needs: members.unsupported.unwrap_or(detail) }
        }
        (ProblemType::InvalidMetadata, _) => NodeError::Metadata { path, key: members.key, detail },
        (ProblemType::CorruptValue, _) => match members.key {
            Some(key) => NodeError::Damaged { key, request: refusal.request.clone() },
            None => remote(refusal, detail),
        },
        (ProblemType::ReadOnlyStore, _) => NodeError::ReadOnly,
        (ProblemType::OutOfSpace, _) => NodeError::OutOfSpace,
        (
            ProblemType::Busy
            | ProblemType::TooManyConflicts
            | ProblemType::TooManyRequests
            | ProblemType::ShuttingDown,
            _,
        ) => NodeError::Busy { retry_after: refusal.retry_after },
        (
            ProblemType::ForbiddenHost
            | ProblemType::ForbiddenOrigin
            | ProblemType::ReadOnlyAccess
            | ProblemType::ReadOnlyServer,
            _,
        ) => NodeError::Forbidden { detail },
        // This client does not make such requests, or they are about keys and elements.
        (
            ProblemType::InvalidKey
            | ProblemType::InvalidPath
            | ProblemType::InvalidHeader
            | ProblemType::UnknownParameter
            | ProblemType::DuplicateParameter
            | ProblemType::MissingParameter
            | ProblemType::InvalidParameter
            | ProblemType::UnknownListing
            | ProblemType::InvalidCursor
            | ProblemType::PrefixNotEmpty
            | ProblemType::InvalidSelection
            | ProblemType::SelectionRankMismatch
            | ProblemType::IndexOutOfBounds
            | ProblemType::InvalidBody
            | ProblemType::BodyShapeMismatch
            | ProblemType::InvalidElement
            | ProblemType::ConfirmationRequired
            | ProblemType::LengthMismatch
            | ProblemType::DigestMismatch
            | ProblemType::IncompleteBody
            | ProblemType::MissingHost
            | ProblemType::NotFound
            | ProblemType::NoSuchKey
            | ProblemType::MethodNotAllowed
            | ProblemType::NotAcceptable
            | ProblemType::UnsuitableFormat
            | ProblemType::BodyTimeout
            | ProblemType::ShapeChanged
            | ProblemType::ValueTooLarge
            | ProblemType::BodyTooLarge
            | ProblemType::SelectionTooLarge
            | ProblemType::TooManyChunks
            | ProblemType::WorkTooLarge
            | ProblemType::TooManyNodes
            | ProblemType::TooManyChanges
            | ProblemType::ChunkTooLarge
            | ProblemType::UnsupportedMediaType
            | ProblemType::UnsupportedContentEncoding
            | ProblemType::UnsupportedTransferEncoding
            | ProblemType::TooMuchMemory
            | ProblemType::RangeNotSatisfiable
            | ProblemType::UnencodableChunk
            | ProblemType::UndecodableChunk
            | ProblemType::Internal,
            _,
        ) => remote(refusal, detail),
    }
}

fn violations(members: Members) -> Vec<Violation> {
    let told = members.violations.into_iter();
    told.map(|violation| Violation { pointer: violation.pointer, reason: violation.reason }).collect()
}

/// What would be lost; at the node that was asked for where no other is named.
fn losses(members: Members, asked: &NodePath) -> Vec<(NodePath, Loss)> {
    let told = members.losses.into_iter();
    told.map(|loss| {
        let path = NodePath::parse(&loss.path).unwrap_or_else(|_| asked.clone());
        (path, Loss { pointer: loss.pointer, property: loss.property })
    })
    .collect()
}

/// The answer of a server that has other types, or of something that stands before it.
fn of_status(refusal: &Refusal, path: &NodePath) -> NodeError {
    let status = refusal.status;
    match status {
        _ if status.is_success() => {
            NodeError::Protocol { detail: format!("the status {status} is no answer to this request") }
        }
        StatusCode::UNAUTHORIZED => NodeError::Unauthorized,
        StatusCode::FORBIDDEN => NodeError::Forbidden { detail: "it gave no reason".into() },
        StatusCode::PRECONDITION_FAILED => NodeError::PreconditionFailed { path: path.clone(), current: None },
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            NodeError::Busy { retry_after: refusal.retry_after }
        }
        _ => remote(refusal, String::new()),
    }
}

fn remote(refusal: &Refusal, detail: String) -> NodeError {
    NodeError::Remote { status: refusal.status.as_u16(), request: refusal.request.clone(), detail }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use meta::json::Json;
    use serde_json::json;
    use store::Version;
    use wire::node;

    use super::*;
    use crate::failure::Knowledge;

    fn refused(problem: Problem) -> Failure<NodeError> {
        let (status, retry_after) = (problem.kind.status(), Some(Duration::from_secs(9)));
        let refusal = Refusal { status, request: "r".into(), retry_after, problem: Some(problem) };
        into_failure(refusal, &NodePath::parse("/asked").unwrap())
    }

    /// What a refusal with every member that there is means.
    fn full(kind: ProblemType) -> Failure<NodeError> {
        let members = Members {
            key: Some("a/zarr.json".into()),
            path: Some("/named".into()),
            limit: Some(7),
            changes: Some(8),
            pointer: Some("/shape/1".into()),
            unsupported: Some("the codec x".into()),
            array: Some("/above".into()),
            dialect: Some("draft".into()),
            current: Some(etag::text(Version::from_u128(5))),
            parameter: Some("target".into()),
            violations: vec![node::Violation { pointer: "/shape".into(), reason: "is not there".into() }],
            differences: vec![node::Difference {
                pointer: "/shape/0".into(),
                expected: Some(Json::compact(&json!(1))),
                actual: None,
            }],
            losses: vec![node::Loss { path: "/named/a".into(), pointer: "/order".into(), property: "it".into() }],
            ..Members::default()
        };
        refused(Problem::new(kind).with_detail("why").with_members(members))
    }

    /// The types that only nodes have, or that say of nodes what they say of nothing else.
    const THEIRS: &[ProblemType] = &[
        ProblemType::NoSuchNode,
        ProblemType::NotAnArray,
        ProblemType::TooManyNodes,
        ProblemType::InvalidZom,
        ProblemType::InvalidNodeName,
        ProblemType::InvalidPatch,
        ProblemType::NodeConflict,
        ProblemType::StrayKeys,
        ProblemType::PreconditionFailed,
        ProblemType::ParentIsArray,
        ProblemType::DialectConflict,
        ProblemType::LossyConversion,
        ProblemType::Unconvertible,
        ProblemType::MissingParameter,
        ProblemType::TooManyChanges,
        ProblemType::BodyTooLarge,
        ProblemType::UnsupportedNode,
        ProblemType::InvalidMetadata,
        ProblemType::CorruptValue,
        ProblemType::ReadOnlyStore,
        ProblemType::OutOfSpace,
        ProblemType::Busy,
        ProblemType::TooManyConflicts,
        ProblemType::TooManyRequests,
        ProblemType::ShuttingDown,
        ProblemType::ForbiddenHost,
        ProblemType::ForbiddenOrigin,
        ProblemType::ReadOnlyAccess,
        ProblemType::ReadOnlyServer,
    ];

    #[test]
    fn every_type_means_an_error() {
        for &kind in ProblemType::ALL {
            let error = full(kind).error;
            let is_remote = matches!(
                &error,
                NodeError::Remote { status, request, detail }
                    if (*status, request.as_str(), detail.as_str()) == (kind.status().as_u16(), "r", "why")
            );
            assert_eq!(is_remote, !THEIRS.contains(&kind), "{kind:?}: {error:?}");
        }
    }

    #[test]
    fn errors_have_what_the_documents_say() {
        let (named, at) = (NodePath::parse("/named").unwrap(), Version::from_u128(5));
        let error = |kind| full(kind).error;
        let found = error(ProblemType::NoSuchNode);
        assert!(matches!(&found, NodeError::NoSuchNode { path } if *path == named), "{found:?}");
        let found = error(ProblemType::TooManyNodes);
        assert!(matches!(found, NodeError::TooManyNodes { limit: 7 }), "{found:?}");
        let found = error(ProblemType::InvalidZom);
        assert!(
            matches!(&found, NodeError::InvalidZom { detail, violations }
                if detail == "why" && violations[0].pointer == "/shape" && violations[0].reason == "is not there"),
            "{found:?}"
        );
        let found = error(ProblemType::InvalidPatch);
        assert!(matches!(&found, NodeError::InvalidPatch { pointer: Some(at), .. } if at == "/shape/1"), "{found:?}");
        let found = error(ProblemType::NodeConflict);
        assert!(
            matches!(&found, NodeError::Differs { path, differences } if *path == named
                && differences[0].expected == Some(Json::compact(&json!(1))) && differences[0].actual.is_none()),
            "{found:?}"
        );
        let found = error(ProblemType::PreconditionFailed);
        assert!(matches!(found, NodeError::PreconditionFailed { current: Some(v), .. } if v == at), "{found:?}");
        let found = error(ProblemType::ParentIsArray);
        assert!(
            matches!(&found, NodeError::BelowArray { array: Some(array), .. } if array.to_string() == "/above"),
            "{found:?}"
        );
        let found = error(ProblemType::DialectConflict);
        assert!(matches!(&found, NodeError::OtherDialect { dialect: Some(meta::Dialect::Draft), .. }), "{found:?}");
        let found = error(ProblemType::LossyConversion);
        assert!(
            matches!(&found, NodeError::Lossy { losses } if losses[0].0.to_string() == "/named/a" && losses[0].1.property == "it"),
            "{found:?}"
        );
        let found = error(ProblemType::MissingParameter);
        assert!(matches!(&found, NodeError::NotInPlace { detail } if detail == "why"), "{found:?}");
        let found = error(ProblemType::TooManyChanges);
        assert!(matches!(found, NodeError::TooManyChanges { changes: 8, limit: 7 }), "{found:?}");
        let found = error(ProblemType::UnsupportedNode);
        assert!(matches!(&found, NodeError::Unsupported { needs, .. } if needs == "the codec x"), "{found:?}");
        let found = error(ProblemType::Busy);
        assert!(matches!(found, NodeError::Busy { retry_after: Some(wait) } if wait.as_secs() == 9), "{found:?}");
    }

    #[test]
    fn documents_that_say_too_little() {
        for kind in [
            ProblemType::TooManyNodes,
            ProblemType::TooManyChanges,
            ProblemType::BodyTooLarge,
            ProblemType::CorruptValue,
        ] {
            let error = refused(Problem::new(kind)).error;
            let title = kind.title();
            assert!(matches!(&error, NodeError::Remote { detail, .. } if detail == title), "{kind:?}: {error:?}");
        }
        let error = refused(Problem::new(ProblemType::MissingParameter)).error;
        assert!(matches!(error, NodeError::Remote { .. }), "{error:?}");
        let error = refused(Problem::new(ProblemType::NodeConflict)).error;
        assert!(matches!(&error, NodeError::Differs { path, .. } if path.to_string() == "/asked"), "{error:?}");
    }

    #[test]
    fn only_what_may_change_is_asked_again() {
        for &kind in ProblemType::ALL {
            let expected = match kind {
                ProblemType::Busy | ProblemType::TooManyConflicts | ProblemType::TooManyRequests => Knowledge::NotDone,
                ProblemType::ShuttingDown => Knowledge::Unknown,
                _ => Knowledge::Answered,
            };
            assert_eq!(full(kind).knowledge, expected, "{kind:?}");
        }
    }
}
