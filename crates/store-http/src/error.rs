//! Errors.

use zarrd_store::{BackendErrorKind, StoreError, WarningRate};
use zarrd_store_remote::Failed;

use crate::failure::Failure;

static WARNINGS: WarningRate = WarningRate::new();

/// The reason why a web server cannot be opened as a store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The HTTP client could not be initialized, for example because the system has no certificate authorities.
    #[error("cannot initialize the HTTP client")]
    Client(#[source] reqwest::Error),
    /// The server cannot be reached, or needs credentials.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// A failed request to a web server: the source of a [`StoreError::Backend`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("could not {action} {target}: {failure}")]
pub struct RequestError {
    /// The failed action, which continues "could not".
    pub action: &'static str,
    /// The URL without options, with the key.
    pub target: String,
    /// The failure.
    pub failure: Failure,
}

impl RequestError {
    /// True if the server may answer later.
    pub(crate) fn is_transient(&self) -> bool {
        self.failure.is_transient() || matches!(self.failure, Failure::Deadline(_))
    }
}

impl From<RequestError> for StoreError {
    fn from(error: RequestError) -> Self {
        let kind = match &error.failure {
            Failure::Refused { retry_after, .. } if error.failure.is_busy() => {
                if let Some(admitted) = WARNINGS.admit("busy") {
                    tracing::warn!(%error, left_out = admitted.left_out, "a web server is busy");
                }
                return Self::Busy { retry_after: *retry_after };
            }
            Failure::Young { remaining } => return Self::Busy { retry_after: Some(*remaining) },
            Failure::Refused { status: 401 | 407, .. } => BackendErrorKind::Unauthenticated,
            Failure::Refused { status: 403, .. } => BackendErrorKind::PermissionDenied,
            Failure::Refused { .. } => BackendErrorKind::Internal,
            Failure::Connection(_) | Failure::Deadline(_) | Failure::Short { .. } => BackendErrorKind::Connection,
            Failure::Redirect(_)
            | Failure::NoValidator
            | Failure::NoTime
            | Failure::NoLength
            | Failure::Encoded
            | Failure::Html
            | Failure::Range
            | Failure::Listing
            | Failure::Long => BackendErrorKind::InvalidResponse,
        };
        Self::backend(kind, error)
    }
}
