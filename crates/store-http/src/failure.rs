//! The failure of one request.

use std::{error::Error, time::Duration};

use zarrd_store_remote::Failed;

/// The failure of one request. Its text has nothing of the answer but codes and, of a redirect, the origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The server refused the request, or failed.
    #[error("the server answered {status}{}", advice(*status))]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The time after which the server asks to retry.
        retry_after: Option<Duration>,
    },
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Connection(String),
    /// No answer arrived in time.
    #[error("no answer arrived within the deadline of {0:?}")]
    Deadline(Duration),
    /// A redirect is not followed.
    #[error("the server answered with a redirect {0}")]
    Redirect(RedirectFailure),
    /// The answer has no validator, so two values cannot be distinguished.
    #[error(
        "the server sends no strong ETag, so a change of the value could not be noticed; add `?versions=last-modified` to the URL if all changes of a file change its time or its size"
    )]
    NoValidator,
    /// The answer has no validator, and no time that could be one.
    #[error(
        "the server sends neither a strong ETag nor the times of the modification and of the answer (`Last-Modified`, `Date`), so a change of the value could not be noticed; add `?recheck=never` to the URL if no file ever changes"
    )]
    NoTime,
    /// The value was modified at the moment of the answer.
    #[error("the value was modified within the last two seconds, so the next one may have the same time")]
    Young {
        /// The time after which it may tell.
        remaining: Duration,
    },
    /// The size of the value is unknown.
    #[error("the answer does not have the length of the value")]
    NoLength,
    /// The bytes of the answer are not those of the value.
    #[error("the answer has a content coding, although only `identity` was accepted")]
    Encoded,
    /// The answer is a page.
    #[error(
        "the answer is an HTML page instead of a value; the server may want a login, or answer so for what is missing"
    )]
    Html,
    /// The answer has another range than the one that was asked for.
    #[error("the answer has another range than the one that was asked for")]
    Range,
    /// The answer is no listing of a zarrd.
    #[error("the answer is no listing of a zarrd")]
    Listing,
    /// The body was too short.
    #[error("the body ended {missing} bytes too early")]
    Short {
        /// The number of bytes that are missing.
        missing: u64,
    },
    /// The body was too long.
    #[error("the body has more bytes than announced")]
    Long,
}

/// The reason why a redirect is not followed, which continues "a redirect".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedirectFailure {
    /// It leads to another origin.
    #[error("to {origin}; name that server, or add `?redirects=follow` to the URL to follow redirects to any server")]
    Elsewhere {
        /// The origin.
        origin: String,
    },
    /// It leads from HTTPS to HTTP.
    #[error("from HTTPS to HTTP")]
    Insecure,
    /// It follows too many others.
    #[error("after {0} others")]
    TooMany(usize),
    /// It has no valid location.
    #[error("without a valid location")]
    Nowhere,
}

fn advice(status: u16) -> &'static str {
    match status {
        401 | 407 => "; only data that need no credentials can be served",
        403 => "; add `?absent=403` to the URL if keys that may not be read are to count as absent",
        405 | 501 => "; it has to support GET and HEAD",
        _ => "",
    }
}

impl Failure {
    /// An answer with this status and nothing else.
    pub(crate) fn refused(status: u16) -> Self {
        Self::Refused { status, retry_after: None }
    }

    /// The status of the answer.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// True if the server asks for fewer requests.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.status(), Some(429 | 503))
    }
}

impl Failed for Failure {
    fn is_transient(&self) -> bool {
        match self {
            Self::Connection(_) | Self::Short { .. } | Self::Young { .. } => true,
            Self::Refused { status, .. } => matches!(status, 408 | 429 | 500 | 502 | 503 | 504),
            _ => false,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            Self::Young { remaining } => Some(*remaining),
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

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        let kind = match &error {
            error if error.is_connect() => "no connection could be established",
            error if error.is_timeout() => "nothing arrived within the timeout",
            _ => "it was closed, or the answer is not valid HTTP",
        };
        // The text of the error itself has the URL; the innermost cause does not.
        let mut cause: &(dyn Error + 'static) = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let detail = match cause.is::<reqwest::Error>() {
            true => String::new(),
            false => cause.to_string().chars().filter(|c| !c.is_control()).take(200).collect(),
        };
        match detail.is_empty() {
            true => Self::Connection(kind.to_owned()),
            false => Self::Connection(format!("{kind} ({detail})")),
        }
    }
}
