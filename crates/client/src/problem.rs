//! Problem documents as errors of the store, the reverse of what the server does.

use reqwest::StatusCode;
use store::{Key, Prefix, StoreError, UploadError};
use wire::{
    etag,
    problem::{Problem, ProblemType},
};

use crate::{
    answer::Refusal,
    remote::{RemoteCorruption, RemoteError},
};

/// What the server said of a content that did not reach it whole.
#[derive(Debug, thiserror::Error)]
#[error("the server says: {0}")]
struct Said(String);

/// The error that a refusal of a request that concerned `key` stands for.
pub(crate) fn into_error(refusal: Refusal, key: Option<&Key>) -> StoreError {
    match refusal.problem {
        Some(problem) => of_problem(Refusal { problem: None, ..refusal }, problem, key),
        None => of_status(refusal, key),
    }
}

/// Every type is named, so that a new one has to be thought of here.
fn of_problem(refusal: Refusal, problem: Problem, key: Option<&Key>) -> StoreError {
    let named = problem.members.key.as_deref().and_then(|text| Key::parse(text).ok());
    let key = named.or_else(|| key.cloned());
    let prefix = problem.members.prefix.as_deref().and_then(|text| Prefix::parse(text).ok());
    match problem.kind {
        ProblemType::PreconditionFailed => match key {
            Some(key) => StoreError::PreconditionFailed { key, current: current(&problem) },
            None => remote(refusal),
        },
        ProblemType::CorruptValue => match key {
            Some(key) => StoreError::corrupt(key, RemoteCorruption { request: refusal.request }),
            None => remote(refusal),
        },
        ProblemType::PrefixNotEmpty => match (prefix, key) {
            (Some(prefix), Some(key)) => StoreError::NotEmpty { prefix, key },
            _ => remote(refusal),
        },
        ProblemType::InvalidCursor => StoreError::InvalidCursor,
        ProblemType::LengthMismatch | ProblemType::IncompleteBody | ProblemType::BodyTimeout => of_content(&problem),
        ProblemType::DigestMismatch => UploadError::DigestMismatch.into(),
        ProblemType::ValueTooLarge => match problem.members.limit {
            Some(limit) => UploadError::TooLarge { limit }.into(),
            None => remote(refusal),
        },
        ProblemType::OutOfSpace => StoreError::OutOfSpace,
        ProblemType::ReadOnlyStore => StoreError::ReadOnly,
        ProblemType::Busy
        | ProblemType::TooManyConflicts
        | ProblemType::TooManyRequests
        | ProblemType::ShuttingDown => StoreError::Busy { retry_after: refusal.retry_after },
        ProblemType::ForbiddenHost
        | ProblemType::ForbiddenOrigin
        | ProblemType::ReadOnlyAccess
        | ProblemType::ReadOnlyServer => RemoteError::Forbidden { detail: problem.said().to_owned() }.into(),
        // The reading of a value knows these by itself, and elsewhere they make no sense.
        ProblemType::NoSuchKey | ProblemType::RangeNotSatisfiable => remote(refusal),
        // This client does not make such requests, so what they mean is between here and the server.
        ProblemType::InvalidKey
        | ProblemType::InvalidHeader
        | ProblemType::UnknownParameter
        | ProblemType::DuplicateParameter
        | ProblemType::InvalidParameter
        | ProblemType::UnknownListing
        | ProblemType::ConfirmationRequired
        | ProblemType::MissingHost
        | ProblemType::NotFound
        | ProblemType::MethodNotAllowed
        | ProblemType::UnsupportedContentEncoding
        | ProblemType::UnsupportedTransferEncoding
        | ProblemType::TooMuchMemory
        | ProblemType::Internal => remote(refusal),
        // They are about elements, not about keys.
        ProblemType::InvalidPath
        | ProblemType::MissingParameter
        | ProblemType::InvalidSelection
        | ProblemType::SelectionRankMismatch
        | ProblemType::IndexOutOfBounds
        | ProblemType::NoSuchNode
        | ProblemType::NotAcceptable
        | ProblemType::UnsuitableFormat
        | ProblemType::NotAnArray
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
        | ProblemType::ShapeChanged
        | ProblemType::TooManyNodes
        | ProblemType::TooManyChanges
        | ProblemType::LossyConversion
        | ProblemType::Unconvertible
        | ProblemType::UnencodableChunk => remote(refusal),
    }
}

/// What is said of a content that did not reach the server whole.
pub(crate) fn of_content(problem: &Problem) -> StoreError {
    let error = match (problem.kind, problem.members.announced, problem.members.received) {
        (ProblemType::BodyTimeout, ..) => UploadError::TimedOut,
        (ProblemType::LengthMismatch, Some(announced), Some(received)) => {
            UploadError::LengthMismatch { announced, received }
        }
        _ => UploadError::Aborted(Box::new(Said(problem.said().to_owned()))),
    };
    error.into()
}

/// The answer of a server that has other types, or of something that stands before it.
fn of_status(refusal: Refusal, key: Option<&Key>) -> StoreError {
    match (refusal.status, key) {
        (status, _) if status.is_success() => {
            RemoteError::InvalidResponse { detail: format!("the status {status} is no answer to this request") }.into()
        }
        (StatusCode::UNAUTHORIZED, _) => RemoteError::Unauthorized.into(),
        (StatusCode::FORBIDDEN, _) => RemoteError::Forbidden { detail: "it gave no reason".into() }.into(),
        (StatusCode::PRECONDITION_FAILED, Some(key)) => {
            StoreError::PreconditionFailed { key: key.clone(), current: None }
        }
        (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE, _) => {
            StoreError::Busy { retry_after: refusal.retry_after }
        }
        _ => remote(refusal),
    }
}

fn remote(refusal: Refusal) -> StoreError {
    RemoteError::Status { status: refusal.status.as_u16(), request: refusal.request }.into()
}

fn current(problem: &Problem) -> Option<store::Version> {
    problem.members.current.as_deref().and_then(etag::parse)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use store::Version;
    use wire::problem::Members;

    use super::*;

    /// What a refusal with every member that there is means for a request that concerned the key `asked`.
    fn error(kind: ProblemType) -> StoreError {
        let members = Members {
            key: Some("named".into()),
            prefix: Some("".into()),
            limit: Some(7),
            announced: Some(3),
            received: Some(2),
            current: Some("\"0000000000000000000000000000002a\"".into()),
            ..Members::default()
        };
        into_error(
            refusal(Problem::new(kind).with_detail("why").with_members(members)),
            Key::parse("asked").ok().as_ref(),
        )
    }

    fn refusal(problem: Problem) -> Refusal {
        let retry_after = Some(Duration::from_secs(9));
        Refusal { status: problem.kind.status(), request: "r".into(), retry_after, problem: Some(problem) }
    }

    #[test]
    fn every_type_means_an_error() {
        for &kind in ProblemType::ALL {
            let error = error(kind);
            let as_meant = match kind {
                ProblemType::PreconditionFailed => matches!(&error, StoreError::PreconditionFailed { key, current }
                    if key.as_str() == "named" && *current == Some(Version::from_u128(42))),
                ProblemType::CorruptValue => {
                    matches!(&error, StoreError::Corrupt { key, cause } if key.as_str() == "named"
                        && cause.downcast_ref::<RemoteCorruption>().is_some_and(|cause| cause.request == "r"))
                }
                ProblemType::PrefixNotEmpty => matches!(&error, StoreError::NotEmpty { prefix, key }
                    if prefix.is_root() && key.as_str() == "named"),
                ProblemType::InvalidCursor => matches!(error, StoreError::InvalidCursor),
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
                | ProblemType::TooManyConflicts
                | ProblemType::TooManyRequests
                | ProblemType::ShuttingDown => {
                    matches!(error, StoreError::Busy { retry_after: Some(wait) } if wait.as_secs() == 9)
                }
                ProblemType::ForbiddenHost
                | ProblemType::ForbiddenOrigin
                | ProblemType::ReadOnlyAccess
                | ProblemType::ReadOnlyServer => {
                    matches!(error.backend_source(), Some(RemoteError::Forbidden { detail }) if detail == "why")
                }
                other => {
                    let status = other.status().as_u16();
                    matches!(error.backend_source(), Some(RemoteError::Status { status: told, request })
                        if *told == status && request == "r")
                }
            };
            assert!(as_meant, "{kind:?}: {error:?}");
        }
    }

    #[test]
    fn documents_that_say_too_little() {
        for kind in [
            ProblemType::PreconditionFailed,
            ProblemType::PrefixNotEmpty,
            ProblemType::CorruptValue,
            ProblemType::ValueTooLarge,
        ] {
            let error = into_error(refusal(Problem::new(kind)), None);
            assert!(matches!(error.backend_source(), Some(RemoteError::Status { .. })), "{kind:?}: {error:?}");
        }
        let error = into_error(refusal(Problem::new(ProblemType::LengthMismatch)), None);
        assert!(matches!(error, StoreError::Upload(UploadError::Aborted(_))), "{error:?}");
    }
}
