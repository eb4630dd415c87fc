//! A request on its way to the logs.

use std::{net::IpAddr, sync::Arc, time::SystemTime};

use axum::{body::Body, extract::Request, response::Response};
use http::{
    Method, StatusCode,
    header::{CONTENT_LENGTH, ETAG},
};
use http_body::Body as _;
use zarrd_wire::{problem::ProblemType, time};

use super::{
    body::{ReceivedBytes, ResponseProgress, SentBody},
    line::{self, AccessLine, AuditLine, AuditOutcome},
    logs::{AccessLog, RequestLogs},
    record::{RequestRecord, RouteName},
};
use crate::{observed_body::ObservedBody, request_id::RequestId};

/// A request in progress. Its line in the access log is queued when it is dropped, so each request has one, whatever
/// ends it.
#[derive(Debug)]
pub(crate) struct LoggedRequest {
    logs: RequestLogs,
    record: Arc<RequestRecord>,
    head: Option<ResponseHead>,
    /// The number of sent bytes of the response's body.
    sent: u64,
    ending: Ending,
}

/// The head of a response.
#[derive(Clone, Copy, Debug)]
struct ResponseHead {
    status: StatusCode,
    problem: Option<ProblemType>,
}

/// The way in which a request ends if it ends now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// Before the last byte of its response.
    Aborted,
    /// With a complete response.
    Complete,
}

/// A head that is not a valid request, and was rejected before it became one.
#[derive(Debug)]
pub(crate) struct MalformedHead {
    /// The other end of the connection.
    pub(crate) peer: IpAddr,
    /// The id of the request.
    pub(crate) id: RequestId,
    /// The status of the response, if there was one.
    pub(crate) status: Option<StatusCode>,
}

impl LoggedRequest {
    /// Begins the lines of a request that has just arrived.
    pub(crate) fn start(logs: &RequestLogs, request: &Request, id: &RequestId, route: RouteName) -> Self {
        let record = Arc::new(RequestRecord::new(request, id.clone(), route));
        Self { logs: logs.clone(), record, head: None, sent: 0, ending: Ending::Aborted }
    }

    /// Adds the record to the extensions of the request, and counts the bytes of its body.
    pub(crate) fn attach(&self, mut request: Request) -> Request {
        request.extensions_mut().insert(self.record.clone());
        if request.body().is_end_stream() {
            return request;
        }
        let record = self.record.clone();
        request.map(|body| ObservedBody::wrap(body, ReceivedBytes(record)))
    }

    /// Queues the line of the audit log, if the response requires one. The request goes on until the end of the
    /// response's body.
    pub(crate) fn respond(mut self, response: Response, problem: Option<ProblemType>) -> Response {
        let head = ResponseHead { status: response.status(), problem };
        self.head = Some(head);
        self.audit(response.headers().get(ETAG).and_then(|etag| etag.to_str().ok()));
        if self.record.method == Method::HEAD || response.body().is_end_stream() {
            self.end();
            return response;
        }
        if !self.has_access_line(Ending::Aborted) {
            return response;
        }
        let announced = response.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let length = announced.or(response.body().size_hint().exact());
        response.map(|body| Body::new(SentBody::new(body, length, self)))
    }

    fn audit(&self, etag: Option<&str>) {
        let (Some(log), Some(outcome)) = (self.logs.audit(), self.audit_outcome()) else { return };
        let record = &*self.record;
        log.push(&line::render(&AuditLine {
            log: "audit",
            time: time::rfc3339(record.time),
            request_id: record.id.to_string(),
            client: record.connection.map(|connection| connection.client),
            principal: record.principal(),
            outcome,
            operation: record.operation(),
            method: &record.method(),
            path: record.path(),
            query: record.query.as_deref(),
            status: self.head.map(|head| head.status.as_u16()),
            problem: self.problem(),
            etag: etag.filter(|_| outcome == AuditOutcome::Performed),
            credential: record.credential(),
        }));
    }

    /// The outcome in the audit log; `None` if the request is not in it.
    fn audit_outcome(&self) -> Option<AuditOutcome> {
        let is_unsafe = self.record.is_unsafe();
        match self.head.map(|head| head.status) {
            Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Some(AuditOutcome::Denied),
            Some(status) if is_unsafe && status.is_success() => Some(AuditOutcome::Performed),
            Some(StatusCode::INTERNAL_SERVER_ERROR) | None if is_unsafe => Some(AuditOutcome::Unknown),
            _ => None,
        }
    }

    /// True if the request has a line in the access log if it ends in this way.
    fn has_access_line(&self, ending: Ending) -> bool {
        match self.logs.access_level() {
            AccessLog::Off => false,
            AccessLog::Errors => ending == Ending::Aborted || self.head.is_none_or(|head| head.is_error()),
            AccessLog::All => true,
        }
    }

    fn access(&self) {
        let Some(log) = self.logs.access().filter(|_| self.has_access_line(self.ending)) else { return };
        let record = &*self.record;
        log.push(&line::render(&AccessLine {
            log: "access",
            time: time::rfc3339(record.time),
            request_id: record.id.to_string(),
            client: record.connection.map(|connection| connection.client),
            principal: record.principal(),
            method: Some(&record.method()),
            path: Some(record.path()),
            query: record.query.as_deref(),
            route: record.route.template,
            status: self.head.map(|head| head.status.as_u16()),
            problem: self.problem(),
            received: record.received(),
            sent: self.sent,
            duration_ms: line::milliseconds(record.started.elapsed()),
            user_agent: record.user_agent.as_deref(),
            version: line::version_name(record.version),
            tls: record.connection.map(|connection| connection.tls),
            aborted: self.ending == Ending::Aborted,
        }));
    }

    fn problem(&self) -> Option<&'static str> {
        Some(self.head?.problem?.slug())
    }
}

impl ResponseProgress for LoggedRequest {
    fn add_sent(&mut self, bytes: u64) {
        self.sent = self.sent.saturating_add(bytes);
    }

    fn end(&mut self) {
        self.ending = Ending::Complete;
    }
}

impl Drop for LoggedRequest {
    fn drop(&mut self) {
        if self.head.is_none() {
            self.audit(None);
        }
        self.access();
    }
}

impl ResponseHead {
    fn is_error(self) -> bool {
        self.status.is_client_error() || self.status.is_server_error()
    }
}

impl MalformedHead {
    /// Queues a line of the access log.
    pub(crate) fn log(&self, logs: &RequestLogs) {
        let Some(log) = logs.access() else { return };
        log.push(&line::render(&AccessLine {
            log: "access",
            time: time::rfc3339(SystemTime::now()),
            request_id: self.id.to_string(),
            client: Some(self.peer),
            status: self.status.map(|status| status.as_u16()),
            ..AccessLine::default()
        }));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::Value;
    use tempfile::TempDir;

    use super::*;
    use crate::request_log::{AuditLog, LogOutput, OperationName, RequestLogOptions, record::ConnectionInfo};

    const UNSAFE: RouteName = RouteName {
        template: Some("/s/{link}"),
        operation: Some(OperationName { selected_by: None, is_unsafe: true }),
    };

    /// The lines of the access log and of the audit log after a request.
    fn logged(uri: &str, handle: impl FnOnce(LoggedRequest, Request)) -> (Vec<Value>, Vec<Value>) {
        let dir = TempDir::new().unwrap();
        let (access, audit) = (dir.path().join("access"), dir.path().join("audit"));
        let options = RequestLogOptions {
            access: AccessLog::All,
            access_output: LogOutput::File(access.clone()),
            audit: AuditLog::On,
            audit_output: LogOutput::File(audit.clone()),
        };
        let logs = RequestLogs::open(&options).unwrap();
        let mut request = Request::builder().method(Method::PUT).uri(uri).body(Body::empty()).unwrap();
        let id = crate::request_id::RequestIds::new().generate();
        request.extensions_mut().insert(ConnectionInfo { client: "192.0.2.1".parse().unwrap(), tls: true });
        let entry = LoggedRequest::start(&logs, &request, &id, UNSAFE);
        let request = entry.attach(request);
        handle(entry, request);
        logs.close();
        let lines = |path| -> Vec<Value> {
            fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        (lines(access), lines(audit))
    }

    #[test]
    fn guards_and_handlers_complete_the_record() {
        let (access, audit) = logged("/s/SECRET/a?token=SECRET", |entry, request| {
            let record = RequestRecord::of(request.extensions()).unwrap();
            record.set_principal("ann".to_owned());
            record.set_principal("another".to_owned());
            drop(entry.respond(Response::new(Body::empty()), None));
        });
        for line in [&access, &audit].map(|lines| &lines[0]) {
            assert_eq!((&line["principal"], &line["client"]), (&"ann".into(), &"192.0.2.1".into()));
            assert_eq!((&line["path"], &line["query"]), (&"/s/…/a".into(), &"token=…".into()));
        }
        assert_eq!((access.len(), audit.len()), (1, 1));
        assert_eq!((&access[0]["tls"], &access[0]["aborted"]), (&true.into(), &false.into()));
        assert_eq!((&audit[0]["outcome"], &audit[0]["operation"]), (&"performed".into(), &"PUT /s/{link}".into()));
    }

    #[test]
    fn change_without_a_response_has_an_unknown_outcome() {
        let (access, audit) = logged("/s/SECRET", |entry, _| drop(entry));
        assert_eq!((&access[0]["aborted"], &access[0]["status"]), (&true.into(), &Value::Null));
        assert_eq!((&audit[0]["outcome"], &audit[0]["status"]), (&"unknown".into(), &Value::Null));
        assert_eq!((access.len(), audit.len()), (1, 1));
    }

    #[test]
    fn failed_change_is_audited_if_it_may_have_been_performed() {
        for (status, outcome) in [(500, Some("unknown")), (401, Some("denied")), (403, Some("denied")), (412, None)] {
            let (_, audit) = logged("/s/SECRET", |entry, _| {
                let response = Response::builder().status(status).body(Body::empty()).unwrap();
                drop(entry.respond(response, None));
            });
            let outcomes: Vec<_> = audit.iter().map(|line| line["outcome"].as_str().unwrap()).collect();
            assert_eq!(outcomes, Vec::from_iter(outcome), "{status}");
        }
    }
}
