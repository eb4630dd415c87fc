//! Errors in the form of S3.

use std::error::Error;

use http::{HeaderMap, StatusCode};
use s3s::{S3Error, S3ErrorCode};
use zarrd_s3::BodyError;
use zarrd_store::{StoreError, UploadError};
use zarrd_wire::{etag::EtagError, problem::ProblemType};

use crate::error::ApiError;

/// The failure of a request: an error of S3, or one that the other surfaces have too.
#[derive(Debug)]
pub(super) enum Failure {
    S3(S3Error),
    Api(ApiError),
}

impl Failure {
    /// The error of S3, and the one that is logged.
    pub(super) fn into_parts(self) -> (S3Error, Option<ApiError>) {
        match self {
            Self::S3(error) => (error, None),
            Self::Api(error) => (rendered(&error), Some(error)),
        }
    }
}

impl From<S3Error> for Failure {
    fn from(error: S3Error) -> Self {
        Self::S3(error)
    }
}

impl From<S3ErrorCode> for Failure {
    fn from(code: S3ErrorCode) -> Self {
        Self::S3(code.into())
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl From<EtagError> for Failure {
    fn from(error: EtagError) -> Self {
        Self::Api(error.into())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        if let StoreError::Upload(UploadError::Aborted(cause)) = &error
            && let Some(body) = body_error(&**cause)
        {
            return Self::S3(body.into());
        }
        Self::Api(error.into())
    }
}

/// The error of a body among the causes of an error.
fn body_error(error: &(dyn Error + 'static)) -> Option<BodyError> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(body) = error.downcast_ref() {
            return Some(*body);
        }
        cause = error.source();
    }
    None
}

/// The error of S3 for an error of the other surfaces.
pub(super) fn rendered(error: &ApiError) -> S3Error {
    let code = code(error.problem_type());
    let mut answer = S3Error::with_message(code, error.message().to_owned());
    let status = match error.problem_type() {
        ProblemType::OutOfSpace => Some(StatusCode::INSUFFICIENT_STORAGE),
        _ => None,
    };
    if let Some(status) = status.or_else(|| answer.status_code().is_none().then(|| error.problem_type().status())) {
        answer.set_status_code(status);
    }
    let headers: HeaderMap = error.headers().iter().cloned().collect();
    if !headers.is_empty() {
        answer.set_headers(headers);
    }
    answer
}

/// The code of S3 for a problem. Those that no request to this surface has are named by their status.
fn code(problem: ProblemType) -> S3ErrorCode {
    match problem {
        ProblemType::NoSuchKey => S3ErrorCode::NoSuchKey,
        ProblemType::PreconditionFailed => S3ErrorCode::PreconditionFailed,
        ProblemType::RangeNotSatisfiable => S3ErrorCode::InvalidRange,
        ProblemType::InvalidKey => S3ErrorCode::InvalidArgument,
        ProblemType::InvalidCursor => S3ErrorCode::InvalidArgument,
        ProblemType::ValueTooLarge => S3ErrorCode::EntityTooLarge,
        ProblemType::BodyTooLarge => S3ErrorCode::MaxMessageLengthExceeded,
        ProblemType::LengthMismatch | ProblemType::IncompleteBody => S3ErrorCode::IncompleteBody,
        ProblemType::BodyTimeout => S3ErrorCode::RequestTimeout,
        ProblemType::DigestMismatch => S3ErrorCode::BadDigest,
        ProblemType::PrefixNotEmpty => S3ErrorCode::BucketNotEmpty,
        ProblemType::Unsupported => S3ErrorCode::NotImplemented,
        ProblemType::Busy | ProblemType::TooManyConflicts => S3ErrorCode::SlowDown,
        other => match other.status() {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => S3ErrorCode::AccessDenied,
            StatusCode::METHOD_NOT_ALLOWED => S3ErrorCode::MethodNotAllowed,
            StatusCode::NOT_FOUND => S3ErrorCode::NoSuchKey,
            StatusCode::NOT_IMPLEMENTED => S3ErrorCode::NotImplemented,
            StatusCode::SERVICE_UNAVAILABLE => S3ErrorCode::ServiceUnavailable,
            status if status.is_server_error() => S3ErrorCode::InternalError,
            _ => S3ErrorCode::InvalidRequest,
        },
    }
}
