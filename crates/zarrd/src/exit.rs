//! Exit codes.

use std::process::ExitCode;

/// The table of exit codes in `--help`.
pub(crate) const TABLE: &str = "\
Exit codes:
  0    success
  1    failed: a file, the network, or a key that could not be transferred
  2    invalid command line or configuration; nothing was done
  3    the store is damaged or cannot be opened; the message names the file
  4    the store is in use by another process; the message has its ID
  5    damaged, doubtful or lost values were found, or values that changed while they were copied
  6    cannot listen on the address
  130  stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP; serve exits 0 on the first signal and 130/143 on the \
       second, and continues after SIGHUP";

/// An exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    /// The command failed.
    Failed = 1,
    /// The command line or the configuration is invalid.
    Usage = 2,
    /// The store is damaged or cannot be opened.
    StoreUnusable = 3,
    /// Another process has opened the store.
    StoreInUse = 4,
    /// Corrupt values were found.
    CorruptionFound = 5,
    /// The address is not available.
    CannotListen = 6,
    /// Stopped by SIGHUP.
    HungUp = 129,
    /// Stopped by SIGINT.
    Interrupted = 130,
    /// Stopped by SIGTERM.
    Terminated = 143,
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
