//! SIGINT and SIGTERM.

use std::{fmt, io};

use tokio::signal::unix::{self, SignalKind};

use crate::exit::{Code, Failure};

/// A signal that asks the program to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT, that is Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// Takes the signals instead of being ended by them.
pub(crate) struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

impl Signals {
    /// From now on the signals come here.
    pub(crate) fn install() -> Result<Self, Failure> {
        let install = |kind| {
            unix::signal(kind).map_err(|source: io::Error| Failure::System { action: "wait for signals", source })
        };
        Ok(Self { interrupt: install(SignalKind::interrupt())?, terminate: install(SignalKind::terminate())? })
    }

    /// Waits for the next.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}

impl Signal {
    /// The exit code of a program that it stopped.
    pub(crate) fn code(self) -> Code {
        match self {
            Self::Interrupt => Code::Interrupted,
            Self::Terminate => Code::Terminated,
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        })
    }
}

/// Does some work unless a signal comes; then the work is dropped where it is.
pub(crate) async fn unless_stopped<T, E: Into<Failure>>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, Failure> {
    let mut signals = Signals::install()?;
    tokio::select! {
        result = work => result.map_err(Into::into),
        signal = signals.next() => Err(Failure::Stopped { signal }),
    }
}
