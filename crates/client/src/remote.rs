//! Errors of the server, and of the way to it, behind a [`StoreError`].

use store::{BackendErrorKind, StoreError};

use crate::failure::TransportError;

/// The source of a [`StoreError::Backend`] that an [`HttpStore`](crate::HttpStore) returns.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The server requires a token, or does not know the one that was sent
    /// ([`BackendErrorKind::Unauthenticated`]).
    #[error("the server requires a token that it knows")]
    Unauthorized,
    /// The server denies access ([`BackendErrorKind::PermissionDenied`]).
    #[error("the server does not allow this: {detail}")]
    Forbidden {
        /// The server's message.
        detail: String,
    },
    /// The server failed, or answered with a status that has no meaning for the request
    /// ([`BackendErrorKind::Internal`]).
    #[error("the server answered with status {status} (request {request})")]
    Status {
        /// The HTTP status.
        status: u16,
        /// The request's id, which the server's log has too.
        request: String,
    },
    /// The response violates the protocol: it is not a zarrd server's, or a proxy changed it ([`BackendErrorKind::InvalidResponse`]).
    #[error("{detail}")]
    InvalidResponse {
        /// The violation.
        detail: String,
    },
    /// The connection failed ([`BackendErrorKind::Connection`]).
    #[error(transparent)]
    Transport(#[from] TransportError),
}

/// The detail of a [`Corruption`](store::Corruption) that the server reported; the server's log says more.
#[derive(Debug, thiserror::Error)]
#[error("the server found it damaged (request {request})")]
pub struct RemoteCorruption {
    /// The request's id, which the server's log has too.
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
