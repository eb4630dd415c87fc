//! The log, on stderr.

use std::io::{self, IsTerminal, Write};

use tracing_subscriber::{
    fmt::{self, format::FmtSpan},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};
use zarrd_access::printable_line;

use crate::{
    config::{LogConfig, LogFormat},
    ui::without_secrets,
};

/// Writes lines without the credentials and invisible characters that they may have, whatever logged them.
struct SafeLines<W>(W);

/// Starts the log. Earlier events are lost.
pub(crate) fn start(config: LogConfig) {
    // Reporting a failure to write to stderr, there, would panic.
    let lines = fmt::layer().log_internal_errors(false).with_writer(|| SafeLines(io::stderr()));
    // Spans, which are traced only, have a line when they begin, and one with their time when they end.
    let lines = lines.with_span_events(FmtSpan::NEW | FmtSpan::CLOSE);
    let filtered = tracing_subscriber::registry().with(config.filter).with(config.caps);
    match config.format {
        LogFormat::Human => filtered.with(lines.with_ansi(io::stderr().is_terminal())).init(),
        LogFormat::Json => filtered.with(lines.json().flatten_event(true)).init(),
    }
}

impl<W: Write> Write for SafeLines<W> {
    /// Writes a whole line, which the subscriber passes on in one piece.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.0.write_all(printable_line(&without_secrets(&text)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_without_credentials_and_invisible_characters() {
        let mut written = Vec::new();
        let line =
            format!("malformed path (b\"/s/zarrdlink_1_{}_{}/a b\")é\u{9b}\u{202e}\n", "0".repeat(32), "a".repeat(64));
        SafeLines(&mut written).write_all(line.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), "malformed path (b\"/s/…/a b\")é\\u009b\\u202e\n");
        let mut written = Vec::new();
        SafeLines(&mut written).write_all(b"GET http://ada:secret@host/a\n").unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), "GET http://…@host/a\n");
    }
}
