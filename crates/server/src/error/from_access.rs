//! Problems of changes of tokens and share links.

use std::sync::Arc;

use access::{ChangeError, ReadError};
use wire::problem::{Problem, ProblemType};

use super::ApiError;

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
            ChangeError::TooMany { .. } => problem(ProblemType::TooManyCredentials),
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

impl From<Arc<ReadError>> for ApiError {
    fn from(error: Arc<ReadError>) -> Self {
        Self::with_cause(ProblemType::AccessUnavailable, error)
    }
}
