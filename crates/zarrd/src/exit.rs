//! How the program ends: what went wrong, and the exit code that tells it to scripts.

use std::{error::Error, io, net::SocketAddr, process::ExitCode};

use store::StoreError;
use store_local::OpenError;

use crate::{
    config::{ConfigError, Location},
    hierarchy::LookError,
    transfer::TransferError,
};

/// The table of exit codes, as `--help` shows it.
pub(crate) const TABLE: &str = "\
Exit codes:
  0    done
  1    failed: a file, the network, or a key that could not be moved
  2    the command line or the configuration is wrong; nothing was done
  3    the store is damaged or cannot be opened; the message names the file
  4    the store is in use by another process; the message tells its id
  5    damaged values were found
  6    the address cannot be listened on
  130  stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP; serve exits 0 on the first signal and 130/143 on the \
       second, and goes on after SIGHUP";

/// The exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    /// Something could not be done.
    Failed = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// The store is damaged or cannot be opened.
    StoreRefused = 3,
    /// Another process has the store open.
    StoreInUse = 4,
    /// Damaged values were found.
    DamageFound = 5,
    /// The address cannot be listened on.
    CannotListen = 6,
    /// Stopped by SIGHUP.
    HungUp = 129,
    /// Stopped by SIGINT.
    Interrupted = 130,
    /// Stopped by SIGTERM.
    Terminated = 143,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store cannot be opened.
    #[error("cannot open the store {location}")]
    Open {
        /// The store.
        location: Location,
        /// Why.
        #[source]
        source: OpenError,
    },
    /// Another process has the store open.
    #[error("{locked}; {advice}")]
    InUse {
        /// Which store, and which process.
        locked: OpenError,
        /// What can be done.
        advice: &'static str,
    },
    /// There is no such store.
    #[error("there is no store at {location}")]
    NoStore {
        /// Where it was looked for.
        location: Location,
    },
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The index was not compacted.
    #[error("the index was not compacted")]
    Compact(#[from] store_local::CompactError),
    /// The server cannot be asked.
    #[error("cannot make a client for {url}")]
    Client {
        /// The server.
        url: String,
        /// Why.
        #[source]
        source: client::BuildError,
    },
    /// The address is taken, or not of this machine.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The server stopped by itself.
    #[error("the server failed")]
    Serve(#[source] io::Error),
    /// The operating system failed something that every command needs.
    #[error("cannot {action}")]
    System {
        /// What was tried, as it continues "cannot".
        action: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Keys were not moved.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// The target of a copy has something in it.
    #[error("{location} is not empty; a copy needs a new store")]
    CopyTarget {
        /// The target.
        location: Location,
    },
    /// A copy ended early.
    #[error("the copy at {location} is incomplete; remove it before the next try")]
    CopyIncomplete {
        /// The target.
        location: Location,
        /// Why.
        #[source]
        source: Box<Failure>,
    },
    /// Damaged values were found.
    #[error("{damaged} of {values} values are damaged or missing")]
    Damage {
        /// How many.
        damaged: u64,
        /// Of how many.
        values: u64,
    },
    /// The server is not there or not well.
    #[error("{url} is not healthy: {reason}")]
    Unhealthy {
        /// What was asked.
        url: String,
        /// What it said, or why it could not be asked.
        reason: String,
    },
    /// A node cannot be looked at.
    #[error(transparent)]
    Look(#[from] LookError),
    /// A node was told that cannot be one.
    #[error("{path:?} is not the path of a node")]
    NodeName {
        /// What was told.
        path: String,
        /// What is wrong with it.
        #[source]
        source: client::PathError,
    },
    /// What was found cannot be written to stdout.
    #[error("cannot write to stdout")]
    Output(#[source] io::Error),
    /// Stopped by a signal.
    #[error("stopped by {signal}")]
    Stopped {
        /// Which.
        signal: crate::signals::Signal,
    },
}

impl Failure {
    /// The exit code that tells this to scripts.
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::Config(_) | Self::CopyTarget { .. } => Code::Usage,
            Self::Open { .. } | Self::NoStore { .. } => Code::StoreRefused,
            Self::InUse { .. } => Code::StoreInUse,
            Self::Damage { .. } => Code::DamageFound,
            Self::Listen { .. } => Code::CannotListen,
            Self::Transfer(error) => error.code(),
            Self::CopyIncomplete { source, .. } => source.code(),
            Self::Stopped { signal } => signal.code(),
            Self::Store(_)
            | Self::Compact(_)
            | Self::Client { .. }
            | Self::Serve(_)
            | Self::System { .. }
            | Self::Look(_)
            | Self::NodeName { .. }
            | Self::Output(_)
            | Self::Unhealthy { .. } => Code::Failed,
        }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

impl From<Code> for i32 {
    fn from(code: Code) -> Self {
        (code as u8).into()
    }
}

/// An error and its sources, as one text.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
