//! The access log and the audit log: JSON lines about requests.
//!
//! A [`LoggedRequest`] accompanies a request from its head to the last byte of its response, and queues its lines. A
//! [`LogWriter`](writer::LogWriter) writes the queue of each log on a thread of its own, so no request waits for a disk
//! or a pipe. Guards and handlers add what only they know, such as the principal, to the [`RequestRecord`] among the
//! extensions of the request.

mod audited;
mod body;
mod credential;
mod entry;
mod line;
mod logs;
mod output;
mod record;
mod redaction;
mod writer;

pub(crate) use credential::CredentialAudit;
pub(crate) use entry::{LoggedRequest, MalformedHead};
pub use logs::{AccessLog, AuditLog, LogOutput, OpenLogError, RequestLogOptions, RequestLogs};
pub(crate) use record::{ConnectionInfo, OperationName, RequestRecord, RouteName};
pub(crate) use redaction::{LoggedError, LoggedPath, LoggedText};
