//! Errors.

use zarrd_store::{BackendErrorKind, StoreError, WarningRate};
use zarrd_store_remote::Failed;

use crate::{
    failure::{Failure, Refusal},
    profile::ProfileError,
};

static WARNINGS: WarningRate = WarningRate::new();

/// The reason why a bucket cannot be opened as a store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A variable of the environment is invalid or missing.
    #[error("the variables {variables} of the environment do not configure {url}: {problem}")]
    Configuration {
        /// The URL.
        url: String,
        /// The names of the variables.
        variables: &'static str,
        /// The problem, without the values of variables that have credentials.
        problem: String,
    },
    /// The profile of AWS cannot be used.
    #[error("no credentials for {url}")]
    Profile {
        /// The URL.
        url: String,
        /// Reason.
        #[source]
        source: ProfileError,
    },
    /// The bucket cannot be reached, or does not exist.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// A failed request to the service of a bucket: the source of a [`StoreError::Backend`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("could not {action} {target}: {failure}")]
pub struct RequestError {
    /// The failed action, which continues "could not".
    pub action: &'static str,
    /// The URL of the object or prefix.
    pub target: String,
    /// The failure.
    pub failure: Failure,
}

impl RequestError {
    /// True if the same request may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        self.failure.is_transient() || matches!(self.failure, Failure::Deadline(_))
    }
}

impl From<RequestError> for StoreError {
    fn from(error: RequestError) -> Self {
        let kind = match &error.failure {
            Failure::Refused(refusal) if refusal.is_busy() => {
                if let Some(admitted) = WARNINGS.admit("busy") {
                    tracing::warn!(%error, left_out = admitted.left_out, "the service of a bucket is busy");
                }
                return Self::Busy { retry_after: refusal.retry_after };
            }
            Failure::Refused(Refusal { status: 401, .. }) | Failure::Credentials(_) => {
                BackendErrorKind::Unauthenticated
            }
            Failure::Refused(Refusal { status: 403, .. }) => BackendErrorKind::PermissionDenied,
            Failure::Connection(_) | Failure::Deadline(_) | Failure::Short { .. } => BackendErrorKind::Connection,
            Failure::Refused(_) => BackendErrorKind::Internal,
            Failure::Whole
            | Failure::NoValidator
            | Failure::Long
            | Failure::Unsorted { .. }
            | Failure::Listing(_)
            | Failure::Answer(_)
            | Failure::Other(_) => BackendErrorKind::InvalidResponse,
        };
        Self::backend(kind, error)
    }
}
