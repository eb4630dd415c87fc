//! Errors that do not depend on what was requested.

use std::{fmt, time::Duration};

use reqwest::StatusCode;
use zarrd_store::{BackendErrorKind, StoreError};
use zarrd_wire::problem::ProblemType;

use crate::{
    error::{RequestError, TransportError},
    response::ErrorResponse,
};

/// Errors of the server as a whole, of an intermediary or of the connection: [`ArrayError::Remote`],
/// [`NodeError::Remote`], and the source of a [`StoreError::Backend`] that an [`HttpStore`](crate::HttpStore) returns.
///
/// [`ArrayError::Remote`]: crate::ArrayError::Remote
/// [`NodeError::Remote`]: crate::NodeError::Remote
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The server requires a token, or rejected the one that was sent ([`BackendErrorKind::Unauthenticated`]).
    #[error("the server requires a valid token: {detail}")]
    Unauthorized {
        /// The server's explanation.
        detail: String,
    },
    /// The client is not permitted to do this ([`BackendErrorKind::PermissionDenied`]).
    #[error("the server does not permit this: {detail}")]
    Forbidden {
        /// Reason.
        detail: String,
    },
    /// The store is read-only until the server is restarted ([`StoreError::ReadOnly`]).
    #[error("the store is read-only until the server is restarted")]
    ReadOnly,
    /// The server has no space left ([`StoreError::OutOfSpace`]).
    #[error("the server has no space left")]
    OutOfSpace,
    /// The server is busy or stopping; the request can be retried ([`StoreError::Busy`]).
    #[error("the server is busy")]
    Busy {
        /// The delay that the server asks for.
        retry_after: Option<Duration>,
    },
    /// The store of the server cannot do this at all ([`StoreError::Unsupported`]).
    #[error("the server does not support this: {detail}")]
    Unsupported {
        /// The server's explanation.
        detail: String,
    },
    /// The server failed, or responded with an unexpected status ([`BackendErrorKind::Internal`]).
    #[error("the server responded with status {status} (request {request}){}", Explanation(detail))]
    Status {
        /// The HTTP status.
        status: u16,
        /// The request ID, by which the request is found in the server's log.
        request: String,
        /// The server's explanation; empty if there is none.
        detail: String,
    },
    /// The response violates the HTTP API of zarrd: it was sent by another server, or a proxy changed it
    /// ([`BackendErrorKind::InvalidResponse`]).
    #[error("the response is not that of a zarrd server: {detail}")]
    InvalidResponse {
        /// The violation.
        detail: String,
    },
    /// The connection failed ([`BackendErrorKind::Connection`]).
    #[error(transparent)]
    Transport(#[from] TransportError),
}

/// The detail of a [`Corruption`](zarrd_store::Corruption) that the server reported. The server's log has the cause.
#[derive(Debug, thiserror::Error)]
#[error("the server found it damaged (request {request})")]
pub struct RemoteCorruption {
    /// The request ID, by which the request is found in the server's log.
    pub request: String,
}

impl RemoteError {
    /// The error of a problem of type `kind` that has no error of its own. `detail` is the server's explanation.
    pub(crate) fn from_problem(response: &ErrorResponse, kind: ProblemType, detail: String) -> Self {
        match kind {
            ProblemType::ForbiddenHost
            | ProblemType::ForbiddenOrigin
            | ProblemType::Forbidden
            | ProblemType::ReadOnlyServer => Self::Forbidden { detail },
            ProblemType::Unauthorized => Self::Unauthorized { detail },
            ProblemType::ReadOnlyStore => Self::ReadOnly,
            ProblemType::OutOfSpace => Self::OutOfSpace,
            ProblemType::Unsupported => Self::Unsupported { detail },
            ProblemType::Busy
            | ProblemType::AccessUnavailable
            | ProblemType::StoreUnavailable
            | ProblemType::TooManyConflicts
            | ProblemType::ValueChanged
            | ProblemType::TooManyRequests
            | ProblemType::ShuttingDown => Self::Busy { retry_after: response.retry_after },
            _ => Self::status(response, detail),
        }
    }

    /// The error of a response without a known problem type, perhaps of an intermediary.
    pub(crate) fn from_status(response: &ErrorResponse) -> Self {
        match response.status {
            status if status.is_success() || status == StatusCode::NOT_MODIFIED => {
                Self::InvalidResponse { detail: format!("unexpected status {status}") }
            }
            StatusCode::UNAUTHORIZED => Self::Unauthorized { detail: "no reason given".into() },
            StatusCode::FORBIDDEN => Self::Forbidden { detail: "no reason given".into() },
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Self::Busy { retry_after: response.retry_after }
            }
            _ => Self::status(response, String::new()),
        }
    }

    fn status(response: &ErrorResponse, detail: String) -> Self {
        Self::Status { status: response.status.as_u16(), request: response.request.clone(), detail }
    }
}

impl From<RequestError> for RemoteError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Transport(error) => Self::Transport(error),
            RequestError::Protocol { detail } => Self::InvalidResponse { detail },
        }
    }
}

impl From<RemoteError> for StoreError {
    fn from(error: RemoteError) -> Self {
        let kind = match &error {
            RemoteError::ReadOnly => return Self::ReadOnly,
            RemoteError::OutOfSpace => return Self::OutOfSpace,
            RemoteError::Unsupported { .. } => return Self::Unsupported { what: "this operation" },
            RemoteError::Busy { retry_after } => return Self::Busy { retry_after: *retry_after },
            RemoteError::Unauthorized { .. } => BackendErrorKind::Unauthenticated,
            RemoteError::Forbidden { .. } => BackendErrorKind::PermissionDenied,
            RemoteError::Status { .. } => BackendErrorKind::Internal,
            RemoteError::InvalidResponse { .. } => BackendErrorKind::InvalidResponse,
            RemoteError::Transport(_) => BackendErrorKind::Connection,
        };
        Self::backend(kind, error)
    }
}

impl From<RequestError> for StoreError {
    fn from(error: RequestError) -> Self {
        RemoteError::from(error).into()
    }
}

/// The server's explanation in the message of [`RemoteError::Status`].
struct Explanation<'a>(&'a str);

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => Ok(()),
            detail => write!(f, ": {detail}"),
        }
    }
}
