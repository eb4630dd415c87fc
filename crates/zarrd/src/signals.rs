//! SIGINT, SIGTERM and SIGHUP.
//!
//! They are taken before a store is touched, so that none ends the process while one is opened or closed: a first signal
//! lets that finish, a second one ends the process at once, which the store is made for.

use std::{fmt, io, process};

use tokio::signal::unix::{self, SignalKind};

use crate::exit::{Code, Failure};

/// A signal that asks the program to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT, that is Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal is gone.
    HangUp,
}

/// The meaning of SIGHUP for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HangUp {
    /// To stop, unless it was started to ignore the signal, as `nohup` does.
    Stops,
    /// To read its settings again, of which a server has none yet that it could.
    Reloads,
}

/// The signals that come to the program, instead of ending it.
pub(crate) struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    /// `None` where the signal is ignored.
    hang_up: Option<unix::Signal>,
    on_hang_up: HangUp,
    /// The first signal that asked to stop, if one has come.
    first: Option<Signal>,
}

impl Signals {
    /// From now on the signals come here. Must be called before a store is opened.
    pub(crate) fn install(on_hang_up: HangUp) -> Result<Self, Failure> {
        let install = |kind| {
            unix::signal(kind).map_err(|source: io::Error| Failure::System { action: "wait for signals", source })
        };
        let ignored = on_hang_up == HangUp::Stops && is_ignored(SignalKind::hangup());
        let hang_up = if ignored { None } else { Some(install(SignalKind::hangup())?) };
        let (interrupt, terminate) = (install(SignalKind::interrupt())?, install(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate, hang_up, on_hang_up, first: None })
    }

    /// Waits for a signal that asks to stop.
    pub(crate) async fn next(&mut self) -> Signal {
        loop {
            let signal = self.receive().await;
            if signal == Signal::HangUp && self.on_hang_up == HangUp::Reloads {
                tracing::info!("SIGHUP came; there is nothing to be loaded again");
                continue;
            }
            self.first.get_or_insert(signal);
            return signal;
        }
    }

    /// Does some work unless a signal comes, or has come; then the work is dropped where it is.
    pub(crate) async fn unless_stopped<T, E: Into<Failure>>(
        &mut self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Failure> {
        self.check()?;
        tokio::select! {
            result = work => result.map_err(Into::into),
            signal = self.next() => Err(Failure::Stopped { signal }),
        }
    }

    /// Does some work to its end, such as opening a store. A signal is remembered meanwhile, and a second one ends the
    /// process.
    pub(crate) async fn finish<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            let begun = self.first;
            tokio::select! {
                result = &mut work => return result,
                signal = self.next() => if begun.is_some() { process::exit(signal.code().into()) },
            }
            tracing::warn!("stopping as soon as the store allows it; a second signal ends the process at once");
        }
    }

    /// Fails where a signal asked to stop.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.first.map_or(Ok(()), |signal| Err(Failure::Stopped { signal }))
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
    /// The exit code of a program that it stopped.
    pub(crate) fn code(self) -> Code {
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

/// Finds out that the program was started to ignore a signal, which only Linux says without unsafe code.
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
    fn ignored_signals_are_read_from_the_status() {
        let status = "Name:\tzarrd\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\n";
        assert!(ignores(status, 1) && ignores(status, 13));
        assert!(!ignores(status, 2) && !ignores(status, 0) && !ignores("", 1));
    }
}
