//! What becomes of requests that fail.

use std::{fmt, time::Duration};

use backon::ExponentialBackoff;
use store::StoreError;
use tokio::time::{Instant, sleep};

use crate::{options::Retries, remote::RemoteError};

/// How a connection failed: the source of [`RemoteError::Transport`], [`ArrayError::Transport`](crate::ArrayError::Transport) and
/// [`NodeError::Transport`](crate::NodeError::Transport).
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// No connection came about, or it broke.
    #[error("the request could not be made, or its answer broke off")]
    Http(#[from] reqwest::Error),
    /// Nothing came, and nothing was taken, for as long as is waited for.
    #[error("the server neither gave nor took a byte for {0:?}")]
    Idle(Duration),
    /// The operation as a whole took longer than it may.
    #[error("the operation took longer than {0:?}")]
    Total(Duration),
    /// The value ended early.
    #[error("the value broke off after byte {at} of {end}")]
    Short {
        /// The first byte that did not come.
        at: u64,
        /// The byte after the last one that should have.
        end: u64,
    },
    /// The connection broke while a value was being read, and the value is no longer there to read on from.
    #[error("the value was replaced or erased while it was read and the connection broke")]
    Replaced,
}

/// What is wrong with an answer, or with getting one, whatever was asked for.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The connection failed.
    Transport(TransportError),
    /// The answer is not one that the contract allows.
    Protocol {
        /// What is wrong with it.
        detail: String,
    },
}

/// Why one try failed, and what is known of what it did.
#[derive(Debug)]
pub(crate) struct Failure<E> {
    pub(crate) error: E,
    pub(crate) knowledge: Knowledge,
    /// How long the server wants to be left alone.
    pub(crate) retry_after: Option<Duration>,
}

/// What is known of a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// It was not carried out, and may succeed later.
    NotDone,
    /// The answer was lost, or came from something between here and the server.
    Unknown,
    /// The server has answered, and would answer the same again.
    Answered,
}

/// True if a request may be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Carried out twice it does what it does once.
    Freely,
    /// Only if it was not carried out.
    IfNotDone,
}

/// When a request is made again: one for each operation.
pub(crate) struct Schedule {
    delays: ExponentialBackoff,
    longest_wait: Duration,
    until: Option<Instant>,
}

impl Fault {
    pub(crate) fn protocol(detail: impl Into<String>) -> Self {
        Self::Protocol { detail: detail.into() }
    }

    fn knowledge(&self) -> Knowledge {
        let error = match self {
            Self::Transport(error) => error,
            Self::Protocol { .. } => return Knowledge::Answered,
        };
        match error {
            TransportError::Http(http) if http.is_connect() => Knowledge::NotDone,
            TransportError::Http(http) if http.is_builder() => Knowledge::Answered,
            TransportError::Http(_) | TransportError::Idle(_) | TransportError::Short { .. } => Knowledge::Unknown,
            TransportError::Total(_) | TransportError::Replaced => Knowledge::Answered,
        }
    }
}

impl<E> Failure<E> {
    /// The server has answered, and would answer the same again.
    pub(crate) fn answered(error: E) -> Self {
        Self { error, knowledge: Knowledge::Answered, retry_after: None }
    }
}

impl<E: From<Fault>> From<Fault> for Failure<E> {
    fn from(fault: Fault) -> Self {
        Self { knowledge: fault.knowledge(), error: fault.into(), retry_after: None }
    }
}

impl<E: From<Fault>> From<TransportError> for Failure<E> {
    fn from(error: TransportError) -> Self {
        Fault::Transport(error).into()
    }
}

impl From<TransportError> for Fault {
    fn from(error: TransportError) -> Self {
        Self::Transport(error)
    }
}

impl From<reqwest::Error> for Fault {
    fn from(error: reqwest::Error) -> Self {
        Self::Transport(error.into())
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Transport(error) => RemoteError::Transport(error).into(),
            Fault::Protocol { detail } => RemoteError::InvalidResponse { detail }.into(),
        }
    }
}

impl Schedule {
    pub(crate) fn new(retries: &Retries, until: Option<Instant>) -> Self {
        Self { delays: retries.delays(), longest_wait: retries.longest_wait, until }
    }

    /// Waits until the request may be made again, or gives back the error where it may not.
    pub(crate) async fn wait<E: fmt::Display>(&mut self, failure: Failure<E>, repeat: Repeat) -> Result<(), E> {
        let Failure { error, knowledge, retry_after } = failure;
        let may_repeat = match repeat {
            Repeat::Freely => knowledge != Knowledge::Answered,
            Repeat::IfNotDone => knowledge == Knowledge::NotDone,
        };
        if !may_repeat {
            return Err(error);
        }
        let Some(delay) = self.next_delay(retry_after.unwrap_or_default()) else { return Err(error) };
        tracing::debug!(%error, ?delay, "a request is made again");
        sleep(delay).await;
        Ok(())
    }

    fn next_delay(&mut self, asked: Duration) -> Option<Duration> {
        let ours = self.delays.next()?;
        // Never sooner than asked for; the random part of ours spreads those who were all asked for the same.
        let delay = if asked.is_zero() { ours } else { asked.saturating_add(ours.min(asked)) };
        let in_time = self.until.is_none_or(|until| Instant::now().checked_add(delay).is_some_and(|then| then < until));
        (asked <= self.longest_wait && in_time).then_some(delay)
    }
}
