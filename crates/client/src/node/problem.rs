//! Conversion of unsuccessful responses into errors.

use reqwest::StatusCode;
use zarrd_meta::{NodePath, zom::Violation};
use zarrd_operations::NodeRejection;
use zarrd_wire::{
    problem::{Members, Problem, ProblemType},
    query::TARGET,
    rejection,
};

use super::NodeError;
use crate::{remote::RemoteError, response::ErrorResponse, retry::FailedAttempt};

/// Converts an unsuccessful response to a request for the node at `path`.
pub(super) fn into_failure(response: ErrorResponse, path: &NodePath) -> FailedAttempt<NodeError> {
    response
        .into_failure(|response, problem| from_problem(response, problem, path), |response| from_status(response, path))
}

/// The match is exhaustive, so that every new problem type has to be handled here.
fn from_problem(response: &ErrorResponse, problem: Problem, requested: &NodePath) -> NodeError {
    if let Some(rejection) = rejection::from_problem(&problem, requested) {
        return rejection.into();
    }
    let detail = problem.message().to_owned();
    let Problem { kind, members, .. } = problem;
    let path = members.node_path(requested);
    match (kind, members.limit) {
        (ProblemType::NoSuchNode, _) => NodeError::NoSuchNode { path },
        (ProblemType::NotAnArray, _) => NodeError::NotAnArray { path },
        (ProblemType::NotAGroup, _) => NodeError::NotAGroup { path },
        (ProblemType::DatasetMismatch, _) => {
            NodeError::DatasetMismatch { path, missing: members.missing, unexpected: members.unexpected, detail }
        }
        (ProblemType::DiscontinuousCoordinate, _) => {
            NodeError::Discontinuous { path, dimension: members.name, label: members.label, detail }
        }
        (
            ProblemType::UnknownDimension
            | ProblemType::InvalidBody
            | ProblemType::BodyShapeMismatch
            | ProblemType::InvalidElement,
            _,
        ) => NodeError::InvalidElements { array: members.array, element: members.element, detail },
        (ProblemType::InvalidZom, _) => NodeError::InvalidZom { detail, violations: violations(members) },
        (ProblemType::InvalidNodeName, _) => NodeError::InvalidName { path, detail },
        (ProblemType::InvalidPatch, _) => NodeError::InvalidPatch { detail, pointer: members.pointer },
        (ProblemType::Unconvertible, _) => NodeError::Unconvertible { path, pointer: members.pointer, detail },
        (ProblemType::MissingParameter, _) if members.parameter.as_deref() == Some(TARGET) => {
            NodeError::NotInPlace { detail }
        }
        (ProblemType::BodyTooLarge, Some(limit)) => NodeError::RequestTooLarge { limit },
        (ProblemType::UnsupportedNode, _) => {
            NodeError::Unsupported { path, needs: members.unsupported.unwrap_or(detail) }
        }
        (ProblemType::InvalidMetadata, _) => NodeError::Metadata { path, key: members.key, detail },
        (ProblemType::CorruptValue, _) => match members.key {
            Some(key) => NodeError::Damaged { key, request: response.request.clone() },
            None => RemoteError::from_problem(response, kind, detail).into(),
        },
        // These do not depend on the request.
        (
            ProblemType::ReadOnlyStore
            | ProblemType::OutOfSpace
            | ProblemType::Busy
            | ProblemType::AccessUnavailable
            | ProblemType::StoreUnavailable
            | ProblemType::TooManyConflicts
            | ProblemType::ValueChanged
            | ProblemType::Unsupported
            | ProblemType::TooManyRequests
            | ProblemType::ShuttingDown
            | ProblemType::ForbiddenHost
            | ProblemType::ForbiddenOrigin
            | ProblemType::Unauthorized
            | ProblemType::Forbidden
            | ProblemType::ReadOnlyServer,
            _,
        ) => RemoteError::from_problem(response, kind, detail).into(),
        // This client does not send such requests, or these concern keys and elements.
        (
            ProblemType::NodeConflict
            | ProblemType::StrayKeys
            | ProblemType::PreconditionFailed
            | ProblemType::ParentIsArray
            | ProblemType::DialectConflict
            | ProblemType::DialectsDiffer
            | ProblemType::LossyConversion
            | ProblemType::InvalidKey
            | ProblemType::InvalidPath
            | ProblemType::InvalidHeader
            | ProblemType::UnknownParameter
            | ProblemType::DuplicateParameter
            | ProblemType::MissingParameter
            | ProblemType::InvalidParameter
            | ProblemType::UnknownListing
            | ProblemType::InvalidCursor
            | ProblemType::PrefixNotEmpty
            | ProblemType::NameConflict
            | ProblemType::InvalidSelection
            | ProblemType::SelectionRankMismatch
            | ProblemType::IndexOutOfBounds
            | ProblemType::DimensionRepeated
            | ProblemType::SelectionConflict
            | ProblemType::NoCoordinate
            | ProblemType::InvalidLabel
            | ProblemType::LabelNotFound
            | ProblemType::AmbiguousLabel
            | ProblemType::DecodeUnspecified
            | ProblemType::UnsuitableReduction
            | ProblemType::UnevenWindow
            | ProblemType::EmptyReduction
            | ProblemType::SumOverflow
            | ProblemType::UnsupportedCalendar
            | ProblemType::ConfirmationRequired
            | ProblemType::LengthMismatch
            | ProblemType::DigestMismatch
            | ProblemType::IncompleteBody
            | ProblemType::MissingHost
            | ProblemType::UntrustedProxy
            | ProblemType::NotFound
            | ProblemType::NoSuchCredential
            | ProblemType::OverlappingDestination
            | ProblemType::PropfindFiniteDepth
            | ProblemType::ForeignDestination
            | ProblemType::SnapshotExpired
            | ProblemType::ChangedWhileWritten
            | ProblemType::PartlyWritten
            | ProblemType::PartlyErased
            | ProblemType::TooManyCredentials
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
            | ProblemType::Internal
            | ProblemType::StoreFailed
            | ProblemType::OutcomeUnknown
            | ProblemType::StoreTimeout,
            _,
        ) => RemoteError::from_problem(response, kind, detail).into(),
    }
}

fn violations(members: Members) -> Vec<Violation> {
    let violations = members.violations.into_iter();
    violations.map(|violation| Violation { pointer: violation.pointer, reason: violation.reason }).collect()
}

/// The error of a response without a known problem type, perhaps of an intermediary.
fn from_status(response: &ErrorResponse, path: &NodePath) -> NodeError {
    match response.status {
        StatusCode::PRECONDITION_FAILED => {
            NodeRejection::PreconditionFailed { path: path.clone(), current: None }.into()
        }
        _ => RemoteError::from_status(response).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use zarrd_meta::json::Json;
    use zarrd_store::Version;
    use zarrd_wire::node;

    use super::*;

    fn failure(problem: Problem) -> FailedAttempt<NodeError> {
        let (status, retry_after) = (problem.kind.status(), Some(Duration::from_secs(9)));
        let response = ErrorResponse { status, request: "r".into(), retry_after, problem: Some(problem) };
        into_failure(response, &NodePath::parse("/requested").unwrap())
    }

    /// The failure of a problem with all members.
    fn full_problem(kind: ProblemType) -> FailedAttempt<NodeError> {
        let members = Members {
            key: Some("a/zarr.json".into()),
            path: Some("/named".into()),
            limit: Some(7),
            changes: Some(8),
            pointer: Some("/shape/1".into()),
            unsupported: Some("the codec x".into()),
            array: Some("/above".into()),
            dialect: Some("draft".into()),
            current: Some(zarrd_wire::etag::text(Version::from_u128(5))),
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
        failure(Problem::new(kind).with_detail("why").with_members(members))
    }

    /// The problem types that have an error of their own.
    const NODE_PROBLEMS: &[ProblemType] = &[
        ProblemType::NoSuchNode,
        ProblemType::NotAnArray,
        ProblemType::TooManyNodes,
        ProblemType::NotAGroup,
        ProblemType::DatasetMismatch,
        ProblemType::DiscontinuousCoordinate,
        ProblemType::UnknownDimension,
        ProblemType::InvalidBody,
        ProblemType::BodyShapeMismatch,
        ProblemType::InvalidElement,
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
        ProblemType::AccessUnavailable,
        ProblemType::StoreUnavailable,
        ProblemType::TooManyConflicts,
        ProblemType::ValueChanged,
        ProblemType::Unsupported,
        ProblemType::TooManyRequests,
        ProblemType::ShuttingDown,
        ProblemType::ForbiddenHost,
        ProblemType::ForbiddenOrigin,
        ProblemType::Unauthorized,
        ProblemType::Forbidden,
        ProblemType::ReadOnlyServer,
    ];

    #[test]
    fn every_problem_type_becomes_its_error() {
        for &kind in ProblemType::ALL {
            let error = full_problem(kind).error;
            let is_remote = matches!(
                &error,
                NodeError::Remote(RemoteError::Status { status, request, detail })
                    if (*status, request.as_str(), detail.as_str()) == (kind.status().as_u16(), "r", "why")
            );
            assert_eq!(is_remote, !NODE_PROBLEMS.contains(&kind), "{kind:?}: {error:?}");
        }
    }

    #[test]
    fn members_become_fields_of_the_error() {
        let (named, at) = (NodePath::parse("/named").unwrap(), Version::from_u128(5));
        let error_of = |kind| full_problem(kind).error;
        let error = error_of(ProblemType::NoSuchNode);
        assert!(matches!(&error, NodeError::NoSuchNode { path } if *path == named), "{error:?}");
        let error = error_of(ProblemType::InvalidZom);
        assert!(
            matches!(&error, NodeError::InvalidZom { detail, violations }
                if detail == "why" && violations[0].pointer == "/shape" && violations[0].reason == "is not there"),
            "{error:?}"
        );
        let error = error_of(ProblemType::InvalidPatch);
        assert!(matches!(&error, NodeError::InvalidPatch { pointer: Some(at), .. } if at == "/shape/1"), "{error:?}");
        let error = error_of(ProblemType::ParentIsArray);
        let NodeError::Rejected(NodeRejection::ParentIsArray { path, array }) = error else { panic!("{error:?}") };
        assert_eq!((path, array.to_string().as_str()), (named, "/above"));
        let error = error_of(ProblemType::PreconditionFailed);
        let NodeError::Rejected(NodeRejection::PreconditionFailed { current, .. }) = error else { panic!("{error:?}") };
        assert_eq!(current, Some(at));
        let error = error_of(ProblemType::TooManyNodes);
        assert!(matches!(error, NodeError::Rejected(NodeRejection::TooManyNodes { limit: 7 })), "{error:?}");
        let error = error_of(ProblemType::NodeConflict);
        let NodeError::Rejected(NodeRejection::NodeConflict { path, differences }) = error else { panic!("{error:?}") };
        assert_eq!(path.to_string(), "/named");
        assert!(differences[0].expected == Some(Json::compact(&json!(1))) && differences[0].actual.is_none());
        let error = error_of(ProblemType::DialectConflict);
        let NodeError::Rejected(NodeRejection::DialectConflict { dialect, .. }) = error else { panic!("{error:?}") };
        assert_eq!(dialect, zarrd_meta::Dialect::Draft);
        let error = error_of(ProblemType::LossyConversion);
        let NodeError::Rejected(NodeRejection::LossyConversion { losses, .. }) = error else { panic!("{error:?}") };
        assert_eq!((losses[0].0.to_string().as_str(), losses[0].1.property.as_str()), ("/named/a", "it"));
        let error = error_of(ProblemType::TooManyChanges);
        let expected = NodeRejection::TooManyChanges { changes: 8, limit: 7 };
        assert!(matches!(&error, NodeError::Rejected(rejection) if *rejection == expected), "{error:?}");
        let error = error_of(ProblemType::MissingParameter);
        assert!(matches!(&error, NodeError::NotInPlace { detail } if detail == "why"), "{error:?}");
        let error = error_of(ProblemType::UnsupportedNode);
        assert!(matches!(&error, NodeError::Unsupported { needs, .. } if needs == "the codec x"), "{error:?}");
        let error = error_of(ProblemType::Busy);
        assert!(
            matches!(error, NodeError::Remote(RemoteError::Busy { retry_after: Some(wait) }) if wait.as_secs() == 9),
            "{error:?}"
        );
        let error = error_of(ProblemType::Unauthorized);
        let is_expected = matches!(&error, NodeError::Remote(RemoteError::Unauthorized { detail }) if detail == "why");
        assert!(is_expected, "{error:?}");
        for kind in [ProblemType::ForbiddenHost, ProblemType::Forbidden] {
            let error = error_of(kind);
            let is_expected = matches!(&error, NodeError::Remote(RemoteError::Forbidden { detail }) if detail == "why");
            assert!(is_expected, "{error:?}");
        }
    }

    #[test]
    fn problems_without_their_members_become_generic_errors() {
        for kind in [
            ProblemType::DialectConflict,
            ProblemType::TooManyNodes,
            ProblemType::TooManyChanges,
            ProblemType::BodyTooLarge,
            ProblemType::CorruptValue,
        ] {
            let error = failure(Problem::new(kind)).error;
            let title = kind.title();
            assert!(
                matches!(&error, NodeError::Remote(RemoteError::Status { detail, .. }) if detail == title),
                "{kind:?}: {error:?}"
            );
        }
        let error = failure(Problem::new(ProblemType::MissingParameter)).error;
        assert!(matches!(error, NodeError::Remote(RemoteError::Status { .. })), "{error:?}");
        let error = failure(Problem::new(ProblemType::NodeConflict)).error;
        let NodeError::Rejected(NodeRejection::NodeConflict { path, .. }) = error else { panic!("{error:?}") };
        assert_eq!(path.to_string(), "/requested");
        let error = failure(Problem::new(ProblemType::StrayKeys)).error;
        let NodeError::Rejected(NodeRejection::StrayKeys { path, key }) = error else { panic!("{error:?}") };
        assert_eq!((path.to_string().as_str(), key.as_str()), ("/requested", "requested"));
        let error = failure(Problem::new(ProblemType::ParentIsArray)).error;
        let NodeError::Rejected(NodeRejection::ParentIsArray { path, array }) = error else { panic!("{error:?}") };
        assert_eq!((path.to_string().as_str(), array.is_root()), ("/requested", true));
    }
}
