//! SIGINT, SIGTERM and SIGHUP.
//!
//! The handlers are installed before a store is opened, so that no signal ends the process while a store is opened or
//! closed: the first signal waits for that, and the second ends the process immediately, which stores tolerate.

use std::{fmt, io, process};

use tokio::signal::unix::{self, SignalKind};

use crate::exit::Code;

/// A signal to stop the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT, that is Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal was closed.
    HangUp,
}

/// Reaction of a command to SIGHUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HangUp {
    /// Stop, unless the process was started to ignore the signal, as `nohup` does.
    Stop,
    /// Continue, after calling what was passed to [`Signals::at_hang_up`].
    Continue,
}

/// Handlers of the signals that stop the program.
pub(crate) struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    /// `None` if the signal is ignored.
    hang_up: Option<unix::Signal>,
    on_hang_up: HangUp,
    /// Called at each SIGHUP after which the command continues.
    at_hang_up: Vec<Box<dyn Fn() + Send>>,
    /// The first signal that was received.
    first: Option<Signal>,
}

/// A signal stopped the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped by {signal}")]
pub(crate) struct Stopped {
    /// The signal.
    pub(crate) signal: Signal,
}

/// Signal handlers cannot be installed.
#[derive(Debug, thiserror::Error)]
#[error("cannot install signal handlers")]
pub(crate) struct InstallError(#[source] io::Error);

impl Signals {
    /// Installs the handlers, which must be done before a store is opened.
    pub(crate) fn install(on_hang_up: HangUp) -> Result<Self, InstallError> {
        let install = |kind| unix::signal(kind).map_err(InstallError);
        let ignored = on_hang_up == HangUp::Stop && is_ignored(SignalKind::hangup());
        let hang_up = if ignored { None } else { Some(install(SignalKind::hangup())?) };
        let (interrupt, terminate) = (install(SignalKind::interrupt())?, install(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate, hang_up, on_hang_up, at_hang_up: Vec::new(), first: None })
    }

    /// Has `action` called at each SIGHUP after which the command continues.
    pub(crate) fn at_hang_up(&mut self, action: impl Fn() + Send + 'static) {
        self.at_hang_up.push(Box::new(action));
    }

    /// Waits for a signal to stop.
    pub(crate) async fn next(&mut self) -> Signal {
        loop {
            let signal = self.receive().await;
            if signal == Signal::HangUp && self.on_hang_up == HangUp::Continue {
                tracing::info!("SIGHUP: reopening the access log and the audit log");
                self.at_hang_up.iter().for_each(|action| action());
                continue;
            }
            self.first.get_or_insert(signal);
            return signal;
        }
    }

    /// Runs some work, which is cancelled when a signal is received.
    pub(crate) async fn unless_stopped<T, E: From<Stopped>>(
        &mut self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.check()?;
        tokio::select! {
            result = work => result,
            signal = self.next() => Err(Stopped { signal }.into()),
        }
    }

    /// Runs some work to its end, such as opening a store. The first signal is only recorded; the second ends the
    /// process.
    pub(crate) async fn finish<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            let stopping = self.first.is_some();
            tokio::select! {
                result = &mut work => return result,
                signal = self.next() => if stopping { process::exit(signal.exit_code().into()) },
            }
            tracing::warn!("stopping as soon as the store permits; a second signal ends the process immediately");
        }
    }

    /// Fails if a signal was received.
    pub(crate) fn check(&self) -> Result<(), Stopped> {
        self.first.map_or(Ok(()), |signal| Err(Stopped { signal }))
    }

    async fn receive(&mut self) -> Signal {
        let hang_up = async {
            match &mut self.hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = hang_up => Signal::HangUp,
        }
    }
}

impl Signal {
    /// The exit code of a program that this signal stopped.
    pub(crate) fn exit_code(self) -> Code {
        match self {
            Self::Interrupt => Code::Interrupted,
            Self::Terminate => Code::Terminated,
            Self::HangUp => Code::HungUp,
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::HangUp => "SIGHUP",
        })
    }
}

/// True if the process was started to ignore a signal. Without unsafe code, only Linux reports that.
fn is_ignored(kind: SignalKind) -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return false };
    ignores(&status, kind.as_raw_value())
}

fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    u32::try_from(signal - 1).is_ok_and(|bit| mask.checked_shr(bit).is_some_and(|mask| mask & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_parsed_from_proc_status() {
        let status = "Name:\tzarrd\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\n";
        assert!(ignores(status, 1) && ignores(status, 13));
        assert!(!ignores(status, 2) && !ignores(status, 0) && !ignores("", 1));
    }
}
