//! The log, on stderr.

use std::io::IsTerminal;

use crate::config::{LogConfig, LogFormat};

/// Starts the log. Earlier events are lost.
pub(crate) fn start(config: LogConfig) {
    // Reporting a failure to write to stderr, there, would panic.
    let log = tracing_subscriber::fmt().with_env_filter(config.filter).log_internal_errors(false);
    let log = log.with_writer(std::io::stderr);
    match config.format {
        LogFormat::Human => log.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}
