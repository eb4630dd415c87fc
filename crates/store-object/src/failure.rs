//! The failure of one request.

use std::{error::Error, fmt, time::Duration};

use object_store::client::{HttpError, HttpErrorKind};
use zarrd_store_remote::Failed;

/// The failure of one request. Its text has nothing of the request and, of the answer, only a code and a region:
/// requests have credentials, and answers repeat them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The service refused the request, or failed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Connection(String),
    /// No answer arrived in time.
    #[error("no answer arrived within the deadline of {0:?}")]
    Deadline(Duration),
    /// Credentials could not be obtained.
    #[error("the credentials could not be obtained: {0}")]
    Credentials(String),
    /// A range was answered with something else.
    #[error("the request for a range of the object was answered with all of it")]
    Whole,
    /// The object has neither an entity tag nor a version.
    #[error(
        "the object has neither a strong ETag nor a version, so a change of it could not be noticed; size and time are not enough"
    )]
    NoValidator,
    /// The body was too short.
    #[error("the body ended {missing} bytes too early")]
    Short {
        /// The number of bytes that are missing.
        missing: u64,
    },
    /// The body was too long.
    #[error("the body has more bytes than announced")]
    Long,
    /// A listing is not sorted.
    #[error(
        "the listing is not sorted by bytes: {after:?} follows {before:?}; directory buckets and hierarchical namespaces are not, and cannot be listed"
    )]
    Unsorted {
        /// The name before.
        before: String,
        /// The name that should not follow.
        after: String,
    },
    /// The answer to a listing is no listing.
    #[error("the answer is no listing: {0}")]
    Listing(String),
    /// The answer to a change is not what it has to be.
    #[error("the answer is invalid: {0}")]
    Answer(String),
    /// Anything else.
    #[error("{0}")]
    Other(&'static str),
}

/// An answer with a status other than success.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The code of the service, such as `AccessDenied`.
    pub code: Option<String>,
    /// The region of the bucket, if the answer names it.
    pub region: Option<String>,
    /// The time after which the service asks to retry.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// True if the code of the service is one of these.
    pub(crate) fn is(&self, codes: &[&str]) -> bool {
        self.code.as_ref().is_some_and(|code| codes.contains(&code.as_str()))
    }

    /// True if the service asks for fewer requests.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.status, 429 | 503) || self.is(&["SlowDown", "ServerBusy"])
    }

    /// True if the bucket does not exist.
    pub(crate) fn is_missing_bucket(&self) -> bool {
        self.is(&["NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted", "AccountIsDisabled"])
    }

    /// True if the caller may not see the object, and nothing is said about the caller's credentials or the object.
    pub(crate) fn is_access_denied(&self) -> bool {
        self.status == 403 && (self.code.is_none() || self.is(&["AccessDenied", "Forbidden", "AuthorizationFailure"]))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the service answered {}", self.status)?;
        if let Some(code) = &self.code {
            write!(f, " {code}")?;
        }
        if let Some(region) = &self.region {
            write!(f, "; the region of the bucket is {region}")?;
        }
        match self.status {
            300..=399 => write!(f, "; the region or endpoint is wrong"),
            401 => write!(f, "; check the credentials"),
            403 if self.is_access_denied() => write!(
                f,
                "; check the credentials, or add `?absent=403` to the URL if objects that may not be read are to count as absent"
            ),
            _ => Ok(()),
        }
    }
}

impl Error for Refusal {}

impl Failure {
    /// The status of the answer.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal) => Some(refusal.status),
            _ => None,
        }
    }

    /// The failure that an error of the library is, which may have it as a source.
    pub(crate) fn of(error: &object_store::Error) -> Self {
        let mut cause: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(error) = cause {
            if let Some(failure) = error.downcast_ref::<Self>() {
                return failure.clone();
            }
            if let Some(error) = error.downcast_ref::<HttpError>()
                && error.source().is_none_or(|source| !source.is::<Self>())
            {
                return Self::Connection(describe(error));
            }
            cause = error.source();
        }
        let status = |status| Self::Refused(Refusal { status, ..Refusal::default() });
        match error {
            object_store::Error::NotFound { .. } => status(404),
            object_store::Error::Precondition { .. } | object_store::Error::AlreadyExists { .. } => status(412),
            object_store::Error::PermissionDenied { .. } => status(403),
            object_store::Error::Unauthenticated { .. } => status(401),
            object_store::Error::InvalidPath { .. } => {
                Self::Other("the service named an object that has no valid path")
            }
            object_store::Error::NotSupported { .. } | object_store::Error::NotImplemented { .. } => {
                Self::Other("the service does not support this request")
            }
            // Answers of the services were checked before. What is left are credentials that cannot be read or used, and
            // answers that lack what they must have.
            _ => {
                Self::Other("the answer lacks what it must have, such as its length, or the credentials cannot be used")
            }
        }
    }
}

impl Failed for Failure {
    fn is_transient(&self) -> bool {
        match self {
            Self::Connection(_) | Self::Short { .. } => true,
            Self::Refused(refusal) => {
                refusal.is_busy()
                    || matches!(refusal.status, 408 | 500 | 502 | 504)
                    || refusal.is(&["InternalError", "RequestTimeout"])
            }
            _ => false,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.retry_after,
            _ => None,
        }
    }

    fn late(limit: Duration) -> Self {
        Self::Deadline(limit)
    }

    fn short(missing: u64) -> Self {
        Self::Short { missing }
    }

    fn long() -> Self {
        Self::Long
    }
}

/// A description of an error of the connection, without the URL.
pub(crate) fn describe(error: &HttpError) -> String {
    let mut cause: &(dyn Error + 'static) = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let kind = match error.kind() {
        HttpErrorKind::Connect => "no connection could be established",
        HttpErrorKind::Timeout => "nothing arrived within the timeout",
        HttpErrorKind::Interrupted | HttpErrorKind::Request => "it was closed",
        HttpErrorKind::Decode => "the answer is not valid HTTP",
        _ => "it broke",
    };
    let detail: String = cause.to_string().chars().filter(|c| !c.is_control()).take(200).collect();
    format!("{kind} ({detail})")
}
