//! Options of the access log and the audit log.

use std::path::PathBuf;

use zarrd_server::{AccessLog, AuditLog, LogOutput, RequestLogOptions};

use super::{AccessLogLevel, AuditLogLevel, ConfigError, ServeOptions};

/// Resolves the options of the access log and the audit log.
///
/// A file without its log is an error, unless the log is off explicitly.
pub(super) fn resolve(flags: &ServeOptions, file: &ServeOptions) -> Result<RequestLogOptions, ConfigError> {
    let access = flags.access_log.or(file.access_log);
    let audit = flags.audit_log.or(file.audit_log);
    let access_file = flags.access_log_file.as_ref().or(file.access_log_file.as_ref());
    let audit_file = flags.audit_log_file.as_ref().or(file.audit_log_file.as_ref());
    if access_file.is_some() && access.is_none() {
        let (file_flag, flag) = ("--access-log-file", "--access-log errors or --access-log all");
        return Err(ConfigError::LogFileWithoutLog { file_flag, flag });
    }
    if audit_file.is_some() && audit.is_none() {
        return Err(ConfigError::LogFileWithoutLog { file_flag: "--audit-log-file", flag: "--audit-log on" });
    }
    if let Some(file) = access_file.filter(|file| Some(*file) == audit_file) {
        return Err(ConfigError::SameLogFile { file: file.clone() });
    }
    let output = |file: Option<&PathBuf>| file.cloned().map_or(LogOutput::Stderr, LogOutput::File);
    Ok(RequestLogOptions {
        access: match access {
            None | Some(AccessLogLevel::Off) => AccessLog::Off,
            Some(AccessLogLevel::Errors) => AccessLog::Errors,
            Some(AccessLogLevel::All) => AccessLog::All,
        },
        access_output: output(access_file),
        audit: match audit {
            None | Some(AuditLogLevel::Off) => AuditLog::Off,
            Some(AuditLogLevel::On) => AuditLog::On,
        },
        audit_output: output(audit_file),
    })
}
