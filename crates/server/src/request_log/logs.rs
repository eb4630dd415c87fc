//! The open logs, and their options.

use std::{fmt, io, path::PathBuf, sync::Arc};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
};

use super::{output::Output, writer::LogWriter};

/// The requests in the access log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessLog {
    /// None.
    #[default]
    Off,
    /// Those with a status of 400 and above, and those whose response did not end.
    Errors,
    /// All.
    All,
}

/// The requests in the audit log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditLog {
    /// None.
    #[default]
    Off,
    /// Those that changed the store or may have, and those with status 401 or 403.
    On,
}

/// The place for the lines of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogOutput {
    /// The standard error stream.
    #[default]
    Stderr,
    /// The end of a file, which is created if it does not exist.
    File(PathBuf),
}

/// Options of the access log and the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestLogOptions {
    /// The requests in the access log.
    pub access: AccessLog,
    /// The place for its lines; a new file is readable by its owner and group.
    pub access_output: LogOutput,
    /// The requests in the audit log.
    pub audit: AuditLog,
    /// The place for its lines; a new file is readable by its owner only.
    pub audit_output: LogOutput,
}

/// The access log and the audit log. Clones share one state; by default, both are off.
#[derive(Clone, Default)]
pub struct RequestLogs(Arc<Inner>);

#[derive(Default)]
struct Inner {
    access: Option<(AccessLog, LogWriter)>,
    audit: Option<LogWriter>,
    dropped: DroppedLines,
}

/// A log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenLogError {
    /// The file cannot be opened.
    #[error("cannot open the {log} log {}", file.display())]
    Open {
        /// The name of the log.
        log: &'static str,
        /// The path of the file.
        file: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The thread that writes the log cannot be started.
    #[error("cannot start the thread of the {log} log")]
    Thread {
        /// The name of the log.
        log: &'static str,
        /// The reason.
        #[source]
        source: io::Error,
    },
}

/// The number of lines that were not written, by log.
pub(crate) type DroppedLines = Family<LogLabels, Counter>;

/// The label of a log.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct LogLabels {
    log: &'static str,
}

const ACCESS: &str = "access";
const AUDIT: &str = "audit";
/// Permissions of new files.
const ACCESS_MODE: u32 = 0o640;
const AUDIT_MODE: u32 = 0o600;

impl RequestLogs {
    /// Opens the logs that are on.
    pub fn open(options: &RequestLogOptions) -> Result<Self, OpenLogError> {
        let dropped = DroppedLines::default();
        let access = match options.access {
            AccessLog::Off => None,
            level => Some((level, open(ACCESS, &options.access_output, ACCESS_MODE, &dropped)?)),
        };
        let audit = match options.audit {
            AuditLog::Off => None,
            AuditLog::On => Some(open(AUDIT, &options.audit_output, AUDIT_MODE, &dropped)?),
        };
        Ok(Self(Arc::new(Inner { access, audit, dropped })))
    }

    /// Opens the files again at their paths, for programs that rename a log before it grows too large.
    pub fn reopen(&self) {
        self.writers().for_each(LogWriter::reopen);
    }

    /// Writes all queued lines, for at most some seconds. Later lines are dropped.
    pub fn close(&self) {
        self.writers().for_each(LogWriter::close);
    }

    /// True if any log is on.
    pub(crate) fn is_on(&self) -> bool {
        self.writers().next().is_some()
    }

    /// The requests in the access log.
    pub(super) fn access_level(&self) -> AccessLog {
        self.0.access.as_ref().map_or(AccessLog::Off, |(level, _)| *level)
    }

    /// The writer of the access log, if it is on.
    pub(super) fn access(&self) -> Option<&LogWriter> {
        self.0.access.as_ref().map(|(_, writer)| writer)
    }

    /// The writer of the audit log, if it is on.
    pub(super) fn audit(&self) -> Option<&LogWriter> {
        self.0.audit.as_ref()
    }

    /// The number of lines that were not written, by log.
    pub(crate) fn dropped(&self) -> &DroppedLines {
        &self.0.dropped
    }

    fn writers(&self) -> impl Iterator<Item = &LogWriter> {
        self.access().into_iter().chain(self.audit())
    }
}

impl fmt::Debug for RequestLogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestLogs").field("access", &self.0.access).field("audit", &self.0.audit).finish()
    }
}

fn open(log: &'static str, output: &LogOutput, mode: u32, dropped: &DroppedLines) -> Result<LogWriter, OpenLogError> {
    let output = match output {
        LogOutput::Stderr => Output::Stderr,
        LogOutput::File(file) => {
            Output::append(file, mode).map_err(|source| OpenLogError::Open { log, file: file.clone(), source })?
        }
    };
    let dropped = dropped.get_or_create(&LogLabels { log }).clone();
    LogWriter::start(log, output, dropped).map_err(|source| OpenLogError::Thread { log, source })
}
