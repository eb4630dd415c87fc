//! Problems of changes of tokens and share links.

use std::sync::Arc;

use http::HeaderValue;
use zarrd_access::{ChangeError, Denial, OpenError, ReadError};
use zarrd_wire::problem::{Problem, ProblemType};

use super::ApiError;

/// The challenge without `Basic`, with which no browser opens a dialog.
pub(crate) const BEARER_CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"zarrd\"");

/// The caller lost its rights while the body of its request was received.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RightsLost {
    /// The credential was accepted at first.
    #[error("the credential is no longer accepted")]
    Credential(#[source] Denial),
    /// The caller has none, and a first token was made.
    #[error("access without a token has ended")]
    Anonymous,
}

impl From<RightsLost> for ApiError {
    fn from(error: RightsLost) -> Self {
        match error {
            RightsLost::Credential(Denial::Unavailable { source }) => source.into(),
            RightsLost::Credential(_) | RightsLost::Anonymous => {
                Self::unauthorized(error.to_string(), BEARER_CHALLENGE)
            }
        }
    }
}

impl From<ChangeError> for ApiError {
    fn from(error: ChangeError) -> Self {
        let problem = |kind| Self::new(Problem::new(kind).with_detail(error.to_string()));
        match error {
            ChangeError::Name(_)
            | ChangeError::NoGrants
            | ChangeError::GrantsTooLong
            | ChangeError::ExpiryPassed { .. } => problem(ProblemType::InvalidBody),
            ChangeError::NotWithinMaker { .. } | ChangeError::ExpiryAfterMaker { .. } => {
                problem(ProblemType::Forbidden)
            }
            // The caller's token was revoked while the request was handled.
            ChangeError::InvalidMaker { .. } => problem(ProblemType::Forbidden),
            ChangeError::TooMany { .. } | ChangeError::TooManyOfMaker { .. } => {
                problem(ProblemType::TooManyCredentials)
            }
            ChangeError::NotFound { .. } => problem(ProblemType::NoSuchCredential),
            ChangeError::Unavailable(source) => source.into(),
            ChangeError::NoSuchKey { .. }
            | ChangeError::CurrentKey { .. }
            | ChangeError::TooManyKeys
            | ChangeError::Random(_)
            | ChangeError::Write { .. } => Self::with_cause(ProblemType::AccessUnavailable, error),
        }
    }
}

impl From<Arc<OpenError>> for ApiError {
    fn from(error: Arc<OpenError>) -> Self {
        Self::with_cause(ProblemType::AccessUnavailable, error)
    }
}

impl From<Arc<ReadError>> for ApiError {
    fn from(error: Arc<ReadError>) -> Self {
        Self::with_cause(ProblemType::AccessUnavailable, error)
    }
}
