//! Errors of a server in [`StoreError`].

use store::{BackendErrorKind, StoreError};

use crate::error::{RequestError, TransportError};

/// The source of a [`StoreError::Backend`] that an [`HttpStore`](crate::HttpStore) returns.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The server requires a token, or rejected the one that was sent ([`BackendErrorKind::Unauthenticated`]).
    #[error("the server requires a valid token")]
    Unauthorized,
    /// The client is not permitted to do this ([`BackendErrorKind::PermissionDenied`]).
    #[error("the server does not permit this: {detail}")]
    Forbidden {
        /// Reason.
        detail: String,
    },
    /// The server failed, or responded with an unexpected status ([`BackendErrorKind::Internal`]).
    #[error("the server responded with status {status} (request {request})")]
    Status {
        /// The HTTP status.
        status: u16,
        /// The request ID, by which the request is found in the server's log.
        request: String,
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

/// The detail of a [`Corruption`](store::Corruption) that the server reported. The server's log has the cause.
#[derive(Debug, thiserror::Error)]
#[error("the server found it damaged (request {request})")]
pub struct RemoteCorruption {
    /// The request ID, by which the request is found in the server's log.
    pub request: String,
}

impl RemoteError {
    fn kind(&self) -> BackendErrorKind {
        match self {
            Self::Unauthorized => BackendErrorKind::Unauthenticated,
            Self::Forbidden { .. } => BackendErrorKind::PermissionDenied,
            Self::Status { .. } => BackendErrorKind::Internal,
            Self::InvalidResponse { .. } => BackendErrorKind::InvalidResponse,
            Self::Transport(_) => BackendErrorKind::Connection,
        }
    }
}

impl From<RemoteError> for StoreError {
    fn from(error: RemoteError) -> Self {
        Self::backend(error.kind(), error)
    }
}

impl From<RequestError> for StoreError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Transport(error) => RemoteError::Transport(error).into(),
            RequestError::Protocol { detail } => RemoteError::InvalidResponse { detail }.into(),
        }
    }
}
