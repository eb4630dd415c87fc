//! Errors of requests, independent of what was requested.

use std::time::Duration;

/// A failed connection: [`RemoteError::Transport`](crate::RemoteError::Transport).
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// No connection could be established, or it broke.
    #[error("the request could not be sent, or its response was cut off")]
    Http(#[from] reqwest::Error),
    /// No data was transferred in either direction for [`Timeouts::idle`](crate::Timeouts::idle).
    #[error("the connection was idle for {0:?} (no data in either direction)")]
    Idle(Duration),
    /// The operation exceeded [`Timeouts::total`](crate::Timeouts::total).
    #[error("the operation took longer than {0:?}")]
    Total(Duration),
    /// The body ended early.
    #[error("the response was truncated at byte {at} of {end}")]
    Truncated {
        /// Offset of the first missing byte.
        at: u64,
        /// Offset of the byte after the last expected one.
        end: u64,
    },
    /// The connection broke while a value was read, and the value changed before the read could be resumed.
    #[error("the connection broke, and the value was replaced or erased before the read could be resumed")]
    Replaced,
}

/// A request without a usable response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The connection failed.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The response violates the HTTP API of zarrd.
    #[error("the response is not that of a zarrd server: {detail}")]
    Protocol {
        /// The violation.
        detail: String,
    },
}

impl RequestError {
    pub(crate) fn protocol(detail: impl Into<String>) -> Self {
        Self::Protocol { detail: detail.into() }
    }
}

impl From<reqwest::Error> for RequestError {
    fn from(error: reqwest::Error) -> Self {
        Self::Transport(error.into())
    }
}
