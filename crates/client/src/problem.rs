//! Conversion of unsuccessful responses into store errors.

use reqwest::StatusCode;
use zarrd_store::{Key, Prefix, StoreError, UploadError};
use zarrd_wire::{
    etag,
    problem::{Problem, ProblemType},
};

use crate::{
    remote::{RemoteCorruption, RemoteError},
    response::{ErrorResponse, Response},
    retry::FailedAttempt,
};

/// The server's explanation of an upload that failed.
#[derive(Debug, thiserror::Error)]
#[error("server: {0}")]
struct ServerMessage(String);

/// Reads an unsuccessful response to a request for `key`, or for no single key.
pub(crate) async fn read_failure(response: Response, key: Option<&Key>) -> FailedAttempt<StoreError> {
    into_failure(response.into_error_response().await, key)
}

/// Converts an unsuccessful response to a request for `key`, or for no single key.
pub(crate) fn into_failure(response: ErrorResponse, key: Option<&Key>) -> FailedAttempt<StoreError> {
    response
        .into_failure(|response, problem| from_problem(response, problem, key), |response| from_status(response, key))
}

/// The operation that the server's store does not support.
fn unsupported(problem: &Problem) -> &'static str {
    let named = problem.members.unsupported.as_deref();
    ["changes", "listings"].into_iter().find(|known| named == Some(known)).unwrap_or("this operation")
}

/// The match is exhaustive, so that every new problem type has to be handled here.
fn from_problem(response: &ErrorResponse, problem: Problem, key: Option<&Key>) -> StoreError {
    let named = problem.members.key.as_deref().and_then(|text| Key::parse(text).ok());
    let key = named.or_else(|| key.cloned());
    let prefix = problem.members.prefix.as_deref().and_then(|text| Prefix::parse(text).ok());
    let remote = || RemoteError::from_problem(response, problem.kind, problem.message().to_owned()).into();
    match problem.kind {
        ProblemType::PreconditionFailed => match key {
            Some(key) => StoreError::PreconditionFailed { key, current: current(&problem) },
            None => remote(),
        },
        ProblemType::CorruptValue => match key {
            Some(key) => StoreError::corrupt(key, RemoteCorruption { request: response.request.clone() }),
            None => remote(),
        },
        ProblemType::PrefixNotEmpty => match (prefix, key) {
            (Some(prefix), Some(key)) => StoreError::NotEmpty { prefix, key },
            _ => remote(),
        },
        ProblemType::NameConflict => match (key, problem.members.keys.get(1)) {
            (Some(key), Some(existing)) => StoreError::NameConflict { key, existing: existing.clone() },
            _ => remote(),
        },
        ProblemType::InvalidCursor => StoreError::InvalidCursor,
        ProblemType::SnapshotExpired => StoreError::SnapshotExpired,
        ProblemType::ValueChanged => match key {
            Some(key) => StoreError::Changed { key },
            None => remote(),
        },
        ProblemType::OutcomeUnknown => match key {
            Some(key) => {
                let source: RemoteError =
                    RemoteError::from_problem(response, problem.kind, problem.message().to_owned());
                StoreError::OutcomeUnknown { key, source: source.into() }
            }
            None => remote(),
        },
        ProblemType::Unsupported => StoreError::Unsupported { what: unsupported(&problem) },
        ProblemType::LengthMismatch | ProblemType::IncompleteBody | ProblemType::BodyTimeout => upload_error(&problem),
        ProblemType::DigestMismatch => UploadError::DigestMismatch.into(),
        ProblemType::ValueTooLarge => match problem.members.limit {
            Some(limit) => UploadError::TooLarge { limit }.into(),
            None => remote(),
        },
        // These do not depend on the request.
        ProblemType::OutOfSpace
        | ProblemType::ReadOnlyStore
        | ProblemType::Busy
        | ProblemType::AccessUnavailable
        | ProblemType::StoreUnavailable
        | ProblemType::TooManyConflicts
        | ProblemType::TooManyRequests
        | ProblemType::ShuttingDown
        | ProblemType::ForbiddenHost
        | ProblemType::ForbiddenOrigin
        | ProblemType::Unauthorized
        | ProblemType::Forbidden
        | ProblemType::ReadOnlyServer => remote(),
        // Reads of values handle these themselves; other requests do not cause them.
        ProblemType::NoSuchKey | ProblemType::RangeNotSatisfiable => remote(),
        // This client does not send such requests, so they were caused by an intermediary.
        ProblemType::InvalidKey
        | ProblemType::InvalidHeader
        | ProblemType::UnknownParameter
        | ProblemType::DuplicateParameter
        | ProblemType::InvalidParameter
        | ProblemType::UnknownListing
        | ProblemType::ConfirmationRequired
        | ProblemType::MissingHost
        | ProblemType::UntrustedProxy
        | ProblemType::NotFound
        | ProblemType::NoSuchCredential
        | ProblemType::OverlappingDestination
        | ProblemType::PropfindFiniteDepth
        | ProblemType::ForeignDestination
        | ProblemType::TooManyCredentials
        | ProblemType::MethodNotAllowed
        | ProblemType::UnsupportedContentEncoding
        | ProblemType::UnsupportedTransferEncoding
        | ProblemType::TooMuchMemory
        | ProblemType::Internal
        | ProblemType::StoreFailed
        | ProblemType::StoreTimeout => remote(),
        // These concern nodes and elements, not keys.
        ProblemType::InvalidPath
        | ProblemType::MissingParameter
        | ProblemType::InvalidSelection
        | ProblemType::SelectionRankMismatch
        | ProblemType::IndexOutOfBounds
        | ProblemType::UnknownDimension
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
        | ProblemType::NoSuchNode
        | ProblemType::NotAcceptable
        | ProblemType::UnsuitableFormat
        | ProblemType::NotAnArray
        | ProblemType::NotAGroup
        | ProblemType::DatasetMismatch
        | ProblemType::DiscontinuousCoordinate
        | ProblemType::BodyTooLarge
        | ProblemType::SelectionTooLarge
        | ProblemType::TooManyChunks
        | ProblemType::ChunkTooLarge
        | ProblemType::WorkTooLarge
        | ProblemType::UnsupportedMediaType
        | ProblemType::InvalidMetadata
        | ProblemType::UndecodableChunk
        | ProblemType::UnsupportedNode
        | ProblemType::InvalidZom
        | ProblemType::InvalidNodeName
        | ProblemType::InvalidPatch
        | ProblemType::InvalidBody
        | ProblemType::BodyShapeMismatch
        | ProblemType::InvalidElement
        | ProblemType::NodeConflict
        | ProblemType::StrayKeys
        | ProblemType::ParentIsArray
        | ProblemType::DialectConflict
        | ProblemType::DialectsDiffer
        | ProblemType::ShapeChanged
        | ProblemType::ChangedWhileWritten
        | ProblemType::PartlyWritten
        | ProblemType::PartlyErased
        | ProblemType::TooManyNodes
        | ProblemType::TooManyChanges
        | ProblemType::LossyConversion
        | ProblemType::Unconvertible
        | ProblemType::UnencodableChunk => remote(),
    }
}

/// The error of an upload that the server did not receive completely.
pub(crate) fn upload_error(problem: &Problem) -> StoreError {
    let error = match (problem.kind, problem.members.announced, problem.members.received) {
        (ProblemType::BodyTimeout, ..) => UploadError::TimedOut,
        (ProblemType::LengthMismatch, Some(announced), Some(received)) => {
            UploadError::LengthMismatch { announced, received }
        }
        _ => UploadError::Aborted(Box::new(ServerMessage(problem.message().to_owned()))),
    };
    error.into()
}

/// The error of a response without a known problem type, perhaps of an intermediary.
fn from_status(response: &ErrorResponse, key: Option<&Key>) -> StoreError {
    match (response.status, key) {
        (StatusCode::PRECONDITION_FAILED, Some(key)) => {
            StoreError::PreconditionFailed { key: key.clone(), current: None }
        }
        _ => RemoteError::from_status(response).into(),
    }
}

fn current(problem: &Problem) -> Option<zarrd_store::Version> {
    problem.members.current.as_deref().and_then(etag::parse)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use zarrd_store::Version;
    use zarrd_wire::problem::Members;

    use super::*;

    /// The error of a problem with all members, for a request for the key `requested`.
    fn full_problem(kind: ProblemType) -> StoreError {
        let members = Members {
            key: Some("named".into()),
            keys: vec!["named".into(), "other".into()],
            prefix: Some("".into()),
            limit: Some(7),
            announced: Some(3),
            received: Some(2),
            current: Some("\"0000000000000000000000000000002a\"".into()),
            unsupported: Some("listings".into()),
            ..Members::default()
        };
        into_failure(
            response(Problem::new(kind).with_detail("why").with_members(members)),
            Key::parse("requested").ok().as_ref(),
        )
        .error
    }

    fn response(problem: Problem) -> ErrorResponse {
        let retry_after = Some(Duration::from_secs(9));
        ErrorResponse { status: problem.kind.status(), request: "r".into(), retry_after, problem: Some(problem) }
    }

    #[test]
    fn every_problem_type_becomes_its_error() {
        for &kind in ProblemType::ALL {
            let error = full_problem(kind);
            let is_expected = match kind {
                ProblemType::PreconditionFailed => matches!(&error, StoreError::PreconditionFailed { key, current }
                    if key.as_str() == "named" && *current == Some(Version::from_u128(42))),
                ProblemType::CorruptValue => {
                    matches!(&error, StoreError::Corrupt { key, cause } if key.as_str() == "named"
                        && cause.downcast_ref::<RemoteCorruption>().is_some_and(|cause| cause.request == "r"))
                }
                ProblemType::PrefixNotEmpty => matches!(&error, StoreError::NotEmpty { prefix, key }
                    if prefix.is_root() && key.as_str() == "named"),
                ProblemType::NameConflict => matches!(&error, StoreError::NameConflict { key, existing }
                    if key.as_str() == "named" && existing == "other"),
                ProblemType::InvalidCursor => matches!(error, StoreError::InvalidCursor),
                ProblemType::SnapshotExpired => matches!(error, StoreError::SnapshotExpired),
                ProblemType::ValueChanged => {
                    matches!(&error, StoreError::Changed { key } if key.as_str() == "named")
                }
                ProblemType::OutcomeUnknown => {
                    matches!(&error, StoreError::OutcomeUnknown { key, .. } if key.as_str() == "named")
                }
                ProblemType::Unsupported => matches!(error, StoreError::Unsupported { what: "listings" }),
                ProblemType::LengthMismatch => {
                    matches!(error, StoreError::Upload(UploadError::LengthMismatch { announced: 3, received: 2 }))
                }
                ProblemType::DigestMismatch => matches!(error, StoreError::Upload(UploadError::DigestMismatch)),
                ProblemType::IncompleteBody => matches!(error, StoreError::Upload(UploadError::Aborted(_))),
                ProblemType::BodyTimeout => matches!(error, StoreError::Upload(UploadError::TimedOut)),
                ProblemType::ValueTooLarge => matches!(error, StoreError::Upload(UploadError::TooLarge { limit: 7 })),
                ProblemType::OutOfSpace => matches!(error, StoreError::OutOfSpace),
                ProblemType::ReadOnlyStore => matches!(error, StoreError::ReadOnly),
                ProblemType::Busy
                | ProblemType::AccessUnavailable
                | ProblemType::StoreUnavailable
                | ProblemType::TooManyConflicts
                | ProblemType::TooManyRequests
                | ProblemType::ShuttingDown => {
                    matches!(error, StoreError::Busy { retry_after: Some(wait) } if wait.as_secs() == 9)
                }
                ProblemType::Unauthorized => {
                    matches!(error.backend_source(), Some(RemoteError::Unauthorized { detail }) if detail == "why")
                }
                ProblemType::ForbiddenHost
                | ProblemType::ForbiddenOrigin
                | ProblemType::Forbidden
                | ProblemType::ReadOnlyServer => {
                    matches!(error.backend_source(), Some(RemoteError::Forbidden { detail }) if detail == "why")
                }
                other => {
                    let status = other.status().as_u16();
                    matches!(error.backend_source(), Some(RemoteError::Status { status: remote, request, detail })
                        if (*remote, request.as_str(), detail.as_str()) == (status, "r", "why"))
                }
            };
            assert!(is_expected, "{kind:?}: {error:?}");
        }
    }

    #[test]
    fn problems_without_their_members_become_generic_errors() {
        for kind in [
            ProblemType::PreconditionFailed,
            ProblemType::PrefixNotEmpty,
            ProblemType::NameConflict,
            ProblemType::CorruptValue,
            ProblemType::ValueTooLarge,
        ] {
            let error = into_failure(response(Problem::new(kind)), None).error;
            assert!(matches!(error.backend_source(), Some(RemoteError::Status { .. })), "{kind:?}: {error:?}");
        }
        let error = into_failure(response(Problem::new(ProblemType::LengthMismatch)), None).error;
        assert!(matches!(error, StoreError::Upload(UploadError::Aborted(_))), "{error:?}");
    }
}
