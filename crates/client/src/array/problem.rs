//! Conversion of unsuccessful responses into errors.

use reqwest::StatusCode;
use zarrd_meta::NodePath;
use zarrd_wire::{
    etag,
    problem::{Problem, ProblemType},
};

use super::{ArrayError, MissingLabel};
use crate::{problem::upload_error, remote::RemoteError, response::ErrorResponse, retry::FailedAttempt};

/// Converts an unsuccessful response to a request for the array at `path`.
pub(super) fn into_failure(response: ErrorResponse, path: &NodePath) -> FailedAttempt<ArrayError> {
    response
        .into_failure(|response, problem| from_problem(response, problem, path), |response| from_status(response, path))
}

/// The match is exhaustive, so that every new problem type has to be handled here.
fn from_problem(response: &ErrorResponse, problem: Problem, requested: &NodePath) -> ArrayError {
    let Problem { kind, members, .. } = &problem;
    let path = || members.node_path(requested);
    let detail = || problem.message().to_owned();
    let request = || response.request.clone();
    let remote = || RemoteError::from_problem(response, *kind, detail()).into();
    match (kind, members.limit) {
        (ProblemType::NoSuchNode, _) => ArrayError::NoSuchNode { path: path() },
        (ProblemType::NotAnArray, _) => ArrayError::NotAnArray { path: path() },
        (ProblemType::UnsupportedNode, _) => {
            ArrayError::Unsupported { path: path(), needs: members.unsupported.clone().unwrap_or_else(detail) }
        }
        (ProblemType::InvalidMetadata, _) => {
            ArrayError::Metadata { path: path(), key: members.key.clone(), detail: detail() }
        }
        (ProblemType::InvalidSelection, _) => ArrayError::InvalidSelection {
            detail: detail(),
            position: members.position,
            pointer: members.pointer.clone(),
        },
        (ProblemType::SelectionRankMismatch, _) => selection_mismatch(&problem),
        (ProblemType::IndexOutOfBounds, _) => match (members.dimension, members.index, members.extent) {
            (Some(dimension), Some(index), Some(extent)) => ArrayError::OutOfBounds { dimension, index, extent },
            _ => selection_mismatch(&problem),
        },
        (
            ProblemType::UnknownDimension
            | ProblemType::DimensionRepeated
            | ProblemType::SelectionConflict
            | ProblemType::NoCoordinate
            | ProblemType::InvalidLabel
            | ProblemType::AmbiguousLabel
            | ProblemType::DecodeUnspecified
            | ProblemType::UnsuitableReduction
            | ProblemType::UnevenWindow
            | ProblemType::EmptyReduction
            | ProblemType::SumOverflow,
            _,
        ) => ArrayError::InvalidLabels { kind: *kind, dimension: members.name.clone(), detail: detail() },
        (ProblemType::LabelNotFound, _) => ArrayError::LabelNotFound(Box::new(MissingLabel {
            dimension: members.name.clone(),
            label: members.label.clone(),
            nearest: members.nearest.clone(),
            first: members.first.clone(),
            last: members.last.clone(),
            detail: detail(),
        })),
        (ProblemType::UnsupportedCalendar, _) => {
            ArrayError::Unsupported { path: path(), needs: members.unsupported.clone().unwrap_or_else(detail) }
        }
        (ProblemType::SelectionTooLarge, limit) => ArrayError::SelectionTooLarge {
            size: members.size,
            limit,
            smaller: members.smaller.as_deref().and_then(|text| text.parse().ok()),
        },
        (ProblemType::TooManyChunks, Some(limit)) => match members.chunks {
            Some(chunks) => ArrayError::TooManyChunks { chunks, limit },
            None => remote(),
        },
        (ProblemType::ChunkTooLarge, _) => ArrayError::ChunkTooLarge { path: path(), detail: detail() },
        (ProblemType::BodyTooLarge, Some(limit)) => ArrayError::RequestTooLarge { limit },
        (ProblemType::UnsuitableFormat, _) => ArrayError::UnsupportedFormat { detail: detail() },
        (ProblemType::UndecodableChunk, _) => match (&members.key, &members.codec) {
            (Some(key), Some(codec)) => {
                let (key, codec) = (key.clone(), codec.clone());
                ArrayError::UndecodableChunk { key, codec, detail: detail(), request: request() }
            }
            _ => remote(),
        },
        (ProblemType::CorruptValue, _) => match &members.key {
            Some(key) => ArrayError::Damaged { key: key.clone(), request: request() },
            None => remote(),
        },
        (ProblemType::PreconditionFailed, _) => {
            ArrayError::PreconditionFailed { path: path(), current: members.current.as_deref().and_then(etag::parse) }
        }
        (ProblemType::BodyShapeMismatch, _) => {
            ArrayError::ElementsMismatch { detail: detail(), expected: members.expected, actual: members.actual }
        }
        (ProblemType::InvalidElement, _) => match &members.element {
            Some(element) => ArrayError::InvalidElement { element: element.clone(), detail: detail() },
            None => invalid_elements(&problem),
        },
        (ProblemType::InvalidBody, _) => invalid_elements(&problem),
        (ProblemType::ShapeChanged, _) => ArrayError::ShapeChanged { path: path() },
        (ProblemType::InvalidPatch, _) => ArrayError::CannotExtend { path: path(), detail: detail() },
        (
            ProblemType::NodeConflict
            | ProblemType::StrayKeys
            | ProblemType::ParentIsArray
            | ProblemType::DialectConflict
            | ProblemType::InvalidZom
            | ProblemType::InvalidNodeName
            | ProblemType::MissingParameter,
            _,
        ) => ArrayError::CannotCreate { path: path(), kind: *kind, detail: detail() },
        (ProblemType::UnencodableChunk, _) => match (&members.key, &members.codec) {
            (Some(key), Some(codec)) => {
                ArrayError::UnencodableChunk { key: key.clone(), codec: codec.clone(), detail: detail() }
            }
            _ => remote(),
        },
        (ProblemType::TooManyChanges, Some(limit)) => match members.changes {
            Some(changes) => ArrayError::TooManyChanges { changes, limit },
            None => remote(),
        },
        (ProblemType::ValueTooLarge, Some(limit)) => ArrayError::RequestTooLarge { limit },
        (ProblemType::LengthMismatch | ProblemType::IncompleteBody | ProblemType::BodyTimeout, _) => {
            ArrayError::Content(upload_error(&problem))
        }
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
        ) => remote(),
        // This client does not send such requests, or these concern keys and hierarchies.
        (
            ProblemType::InvalidKey
            | ProblemType::InvalidPath
            | ProblemType::InvalidHeader
            | ProblemType::UnknownParameter
            | ProblemType::DuplicateParameter
            | ProblemType::InvalidParameter
            | ProblemType::UnknownListing
            | ProblemType::InvalidCursor
            | ProblemType::PrefixNotEmpty
            | ProblemType::NameConflict
            | ProblemType::ConfirmationRequired
            | ProblemType::DigestMismatch
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
            | ProblemType::ValueTooLarge
            | ProblemType::TooManyChunks
            | ProblemType::WorkTooLarge
            | ProblemType::BodyTooLarge
            | ProblemType::UnsupportedMediaType
            | ProblemType::UnsupportedContentEncoding
            | ProblemType::UnsupportedTransferEncoding
            | ProblemType::TooMuchMemory
            | ProblemType::RangeNotSatisfiable
            | ProblemType::NotAGroup
            | ProblemType::DatasetMismatch
            | ProblemType::DiscontinuousCoordinate
            | ProblemType::DialectsDiffer
            | ProblemType::TooManyNodes
            | ProblemType::TooManyChanges
            | ProblemType::LossyConversion
            | ProblemType::Unconvertible
            | ProblemType::Internal
            | ProblemType::StoreFailed
            | ProblemType::OutcomeUnknown
            | ProblemType::StoreTimeout,
            _,
        ) => remote(),
    }
}

fn invalid_elements(problem: &Problem) -> ArrayError {
    let (pointer, position) = (problem.members.pointer.clone(), problem.members.position);
    ArrayError::InvalidElements { detail: problem.message().to_owned(), pointer, position }
}

fn selection_mismatch(problem: &Problem) -> ArrayError {
    ArrayError::SelectionMismatch { detail: problem.message().to_owned(), dimension: problem.members.dimension }
}

/// The error of a response without a known problem type, perhaps of an intermediary.
fn from_status(response: &ErrorResponse, path: &NodePath) -> ArrayError {
    match response.status {
        StatusCode::PRECONDITION_FAILED => ArrayError::PreconditionFailed { path: path.clone(), current: None },
        _ => RemoteError::from_status(response).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use zarrd_meta::select;
    use zarrd_store::{StoreError, UploadError, Version};
    use zarrd_wire::problem::Members;

    use super::*;

    fn requested() -> NodePath {
        NodePath::parse("/requested").unwrap()
    }

    fn failure(problem: Problem) -> FailedAttempt<ArrayError> {
        let (status, retry_after) = (problem.kind.status(), Some(Duration::from_secs(9)));
        let response = ErrorResponse { status, request: "r".into(), retry_after, problem: Some(problem) };
        into_failure(response, &requested())
    }

    /// The failure of a problem with all members.
    fn full_problem(kind: ProblemType) -> FailedAttempt<ArrayError> {
        let members = Members {
            key: Some("a/c/0".into()),
            path: Some("/named".into()),
            limit: Some(7),
            size: Some(8),
            position: Some(3),
            pointer: Some("/select/1".into()),
            dimension: Some(1),
            index: Some(-5),
            extent: Some(4),
            name: Some("lat".into()),
            label: Some("51".into()),
            nearest: Some(json!(50.0)),
            first: Some(json!(60.0)),
            last: Some(json!("x")),
            chunks: Some(9),
            smaller: Some("0:2,...".into()),
            codec: Some("zstd".into()),
            unsupported: Some("the codec x".into()),
            expected: Some(16),
            actual: Some(12),
            element: Some(vec![0, 2]),
            changes: Some(9),
            announced: Some(5),
            received: Some(4),
            current: Some(etag::text(Version::from_u128(5))),
            ..Members::default()
        };
        failure(Problem::new(kind).with_detail("why").with_members(members))
    }

    #[test]
    fn every_problem_type_becomes_its_error() {
        let named = NodePath::parse("/named").unwrap();
        for &kind in ProblemType::ALL {
            let FailedAttempt { error, .. } = full_problem(kind);
            let is_expected = match (&error, kind) {
                (ArrayError::NoSuchNode { path }, ProblemType::NoSuchNode) => *path == named,
                (ArrayError::NotAnArray { path }, ProblemType::NotAnArray) => *path == named,
                (ArrayError::Unsupported { path, needs }, ProblemType::UnsupportedNode) => {
                    *path == named && needs == "the codec x"
                }
                (ArrayError::Unsupported { path, needs }, ProblemType::UnsupportedCalendar) => {
                    *path == named && needs == "the codec x"
                }
                (
                    ArrayError::InvalidLabels { kind: found, dimension, detail },
                    ProblemType::UnknownDimension
                    | ProblemType::DimensionRepeated
                    | ProblemType::SelectionConflict
                    | ProblemType::NoCoordinate
                    | ProblemType::InvalidLabel
                    | ProblemType::AmbiguousLabel
                    | ProblemType::DecodeUnspecified
                    | ProblemType::UnsuitableReduction
                    | ProblemType::UnevenWindow
                    | ProblemType::EmptyReduction
                    | ProblemType::SumOverflow,
                ) => *found == kind && dimension.as_deref() == Some("lat") && detail == "why",
                (ArrayError::LabelNotFound(missing), ProblemType::LabelNotFound) => {
                    let expected = MissingLabel {
                        dimension: Some("lat".into()),
                        label: Some("51".into()),
                        nearest: Some(json!(50.0)),
                        first: Some(json!(60.0)),
                        last: Some(json!("x")),
                        detail: "why".into(),
                    };
                    **missing == expected
                }
                (ArrayError::Metadata { path, key, detail }, ProblemType::InvalidMetadata) => {
                    *path == named && key.as_deref() == Some("a/c/0") && detail == "why"
                }
                (ArrayError::InvalidSelection { detail, position, pointer }, ProblemType::InvalidSelection) => {
                    detail == "why" && *position == Some(3) && pointer.as_deref() == Some("/select/1")
                }
                (ArrayError::SelectionMismatch { dimension, .. }, ProblemType::SelectionRankMismatch) => {
                    *dimension == Some(1)
                }
                (ArrayError::OutOfBounds { dimension, index, extent }, ProblemType::IndexOutOfBounds) => {
                    (*dimension, *index, *extent) == (1, -5, 4)
                }
                (ArrayError::SelectionTooLarge { size, limit, smaller }, ProblemType::SelectionTooLarge) => {
                    (*size, *limit, smaller) == (Some(8), Some(7), &Some(select![0..2, ...]))
                }
                (ArrayError::TooManyChunks { chunks, limit }, ProblemType::TooManyChunks) => {
                    (*chunks, *limit) == (9, 7)
                }
                (ArrayError::ChunkTooLarge { path, .. }, ProblemType::ChunkTooLarge) => *path == named,
                (ArrayError::RequestTooLarge { limit }, ProblemType::BodyTooLarge) => *limit == 7,
                (ArrayError::UnsupportedFormat { detail }, ProblemType::UnsuitableFormat) => detail == "why",
                (ArrayError::UndecodableChunk { key, codec, request, .. }, ProblemType::UndecodableChunk) => {
                    (key.as_str(), codec.as_str(), request.as_str()) == ("a/c/0", "zstd", "r")
                }
                (ArrayError::Damaged { key, request }, ProblemType::CorruptValue) => key == "a/c/0" && request == "r",
                (ArrayError::PreconditionFailed { path, current }, ProblemType::PreconditionFailed) => {
                    *path == named && *current == Some(Version::from_u128(5))
                }
                (ArrayError::ElementsMismatch { expected, actual, .. }, ProblemType::BodyShapeMismatch) => {
                    (*expected, *actual) == (Some(16), Some(12))
                }
                (ArrayError::InvalidElement { element, detail }, ProblemType::InvalidElement) => {
                    *element == [0, 2] && detail == "why"
                }
                (ArrayError::InvalidElements { pointer, position, .. }, ProblemType::InvalidBody) => {
                    pointer.as_deref() == Some("/select/1") && *position == Some(3)
                }
                (ArrayError::ShapeChanged { path }, ProblemType::ShapeChanged) => *path == named,
                (ArrayError::CannotExtend { path, detail }, ProblemType::InvalidPatch) => {
                    *path == named && detail == "why"
                }
                (
                    ArrayError::CannotCreate { path, kind: found, detail },
                    ProblemType::NodeConflict
                    | ProblemType::StrayKeys
                    | ProblemType::ParentIsArray
                    | ProblemType::DialectConflict
                    | ProblemType::InvalidZom
                    | ProblemType::InvalidNodeName
                    | ProblemType::MissingParameter,
                ) => *path == named && *found == kind && detail == "why",
                (ArrayError::UnencodableChunk { key, codec, .. }, ProblemType::UnencodableChunk) => {
                    key == "a/c/0" && codec == "zstd"
                }
                (ArrayError::TooManyChanges { changes, limit }, ProblemType::TooManyChanges) => {
                    (*changes, *limit) == (9, 7)
                }
                (ArrayError::RequestTooLarge { limit }, ProblemType::ValueTooLarge) => *limit == 7,
                (ArrayError::Content(StoreError::Upload(error)), kind) => match kind {
                    ProblemType::LengthMismatch => {
                        matches!(error, UploadError::LengthMismatch { announced: 5, received: 4 })
                    }
                    ProblemType::IncompleteBody => matches!(error, UploadError::Aborted(_)),
                    ProblemType::BodyTimeout => matches!(error, UploadError::TimedOut),
                    _ => false,
                },
                (ArrayError::Remote(RemoteError::ReadOnly), ProblemType::ReadOnlyStore) => true,
                (ArrayError::Remote(RemoteError::OutOfSpace), ProblemType::OutOfSpace) => true,
                (
                    ArrayError::Remote(RemoteError::Busy { retry_after }),
                    ProblemType::Busy
                    | ProblemType::AccessUnavailable
                    | ProblemType::StoreUnavailable
                    | ProblemType::TooManyConflicts
                    | ProblemType::ValueChanged
                    | ProblemType::TooManyRequests
                    | ProblemType::ShuttingDown,
                ) => *retry_after == Some(Duration::from_secs(9)),
                (ArrayError::Remote(RemoteError::Unsupported { detail }), ProblemType::Unsupported) => detail == "why",
                (ArrayError::Remote(RemoteError::Unauthorized { detail }), ProblemType::Unauthorized) => {
                    detail == "why"
                }
                (
                    ArrayError::Remote(RemoteError::Forbidden { detail }),
                    ProblemType::ForbiddenHost
                    | ProblemType::ForbiddenOrigin
                    | ProblemType::Forbidden
                    | ProblemType::ReadOnlyServer,
                ) => detail == "why",
                (ArrayError::Remote(RemoteError::Status { status, request, detail }), other) => {
                    (*status, request.as_str(), detail.as_str()) == (other.status().as_u16(), "r", "why")
                        && !has_own_error(other)
                }
                _ => false,
            };
            assert!(is_expected, "{kind:?}: {error:?}");
        }
    }

    /// True for the problem types that have an error of their own.
    fn has_own_error(kind: ProblemType) -> bool {
        use ProblemType as P;
        let nodes = [P::NoSuchNode, P::NotAnArray, P::UnsupportedNode, P::InvalidMetadata, P::InvalidSelection];
        let sizes = [P::SelectionTooLarge, P::TooManyChunks, P::ChunkTooLarge, P::BodyTooLarge, P::ValueTooLarge];
        let elements =
            [P::SelectionRankMismatch, P::IndexOutOfBounds, P::UndecodableChunk, P::CorruptValue, P::UnsuitableFormat];
        let writes = [P::BodyShapeMismatch, P::InvalidElement, P::InvalidBody, P::ShapeChanged, P::InvalidPatch];
        let commits = [P::UnencodableChunk, P::TooManyChanges, P::PreconditionFailed, P::ReadOnlyStore, P::OutOfSpace];
        let bodies = [P::LengthMismatch, P::IncompleteBody, P::BodyTimeout];
        [&nodes[..], &sizes, &elements, &writes, &commits, &bodies].concat().contains(&kind)
    }

    #[test]
    fn problems_without_their_members_become_generic_errors() {
        for kind in [
            ProblemType::TooManyChunks,
            ProblemType::BodyTooLarge,
            ProblemType::UndecodableChunk,
            ProblemType::CorruptValue,
            ProblemType::UnencodableChunk,
            ProblemType::TooManyChanges,
        ] {
            let FailedAttempt { error, .. } = failure(Problem::new(kind));
            let title = kind.title();
            assert!(
                matches!(&error, ArrayError::Remote(RemoteError::Status { detail, .. }) if detail == title),
                "{kind:?}: {error:?}"
            );
        }
        let FailedAttempt { error, .. } = failure(Problem::new(ProblemType::IndexOutOfBounds));
        assert!(matches!(error, ArrayError::SelectionMismatch { dimension: None, .. }), "{error:?}");
        let FailedAttempt { error, .. } = failure(Problem::new(ProblemType::InvalidElement));
        assert!(matches!(error, ArrayError::InvalidElements { pointer: None, .. }), "{error:?}");
        for kind in [ProblemType::NoSuchNode, ProblemType::NotAnArray] {
            let FailedAttempt { error, .. } = failure(Problem::new(kind));
            let (ArrayError::NoSuchNode { path } | ArrayError::NotAnArray { path }) = error else {
                panic!("{error:?}")
            };
            assert_eq!(path, requested());
        }
    }

    #[test]
    fn messages_include_limits() {
        let too_large = full_problem(ProblemType::SelectionTooLarge).error;
        assert_eq!(too_large.to_string(), "the selection is too large: it has 8 bytes, the limit is 7; 0:2,... fits");
        let bounds = full_problem(ProblemType::IndexOutOfBounds).error;
        assert_eq!(bounds.to_string(), "index -5 is out of bounds for dimension 1, whose extent is 4");
    }
}
