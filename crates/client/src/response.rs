//! Response heads and bodies.

use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use reqwest::{
    StatusCode,
    header::{
        CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, LAST_MODIFIED, LOCATION,
        RETRY_AFTER,
    },
};
use serde::de::DeserializeOwned;
use zarrd_store::ValueMeta;
use zarrd_wire::{
    attributes, etag, headers,
    problem::{Problem, ProblemType},
    range::ContentRange,
    time,
};

use crate::{
    deadline::Deadline,
    error::{RequestError, TransportError},
    retry::{Execution, FailedAttempt},
};

/// Maximum size of a problem document, in bytes.
const MAX_PROBLEM_BYTES: usize = 64 * 1024;

/// A response whose head has been received.
pub(crate) struct Response {
    response: reqwest::Response,
    deadline: Deadline,
}

/// An unsuccessful response that has been read completely.
#[derive(Debug)]
pub(crate) struct ErrorResponse {
    pub(crate) status: StatusCode,
    pub(crate) request: String,
    pub(crate) retry_after: Option<Duration>,
    /// The problem document, if it has a known type.
    pub(crate) problem: Option<Problem>,
}

impl Response {
    pub(crate) fn new(response: reqwest::Response, deadline: Deadline) -> Self {
        Self { response, deadline }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(crate) fn header(&self, name: HeaderName) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// The request ID; empty if there is no valid one.
    pub(crate) fn request_id(&self) -> String {
        self.header(headers::REQUEST_ID).filter(|id| headers::is_request_id(id.as_bytes())).unwrap_or_default().into()
    }

    /// The target of a redirect.
    pub(crate) fn location(&self) -> Option<&str> {
        self.header(LOCATION)
    }

    /// The `Content-Length`, if any. It includes the content coding.
    pub(crate) fn content_length(&self) -> Result<Option<u64>, RequestError> {
        let length = self.header(CONTENT_LENGTH).map(str::parse).transpose();
        length.map_err(|_| RequestError::protocol("invalid Content-Length"))
    }

    /// The length of a value, which must be present and must not have a content coding.
    pub(crate) fn value_length(&self) -> Result<u64, RequestError> {
        if self.has_content_coding() {
            return Err(RequestError::protocol("a value with a Content-Encoding"));
        }
        self.content_length()?.ok_or_else(|| RequestError::protocol("a value without a Content-Length"))
    }

    /// True if the body has a content coding.
    pub(crate) fn has_content_coding(&self) -> bool {
        self.header(CONTENT_ENCODING).is_some_and(|coding| !coding.eq_ignore_ascii_case("identity"))
    }

    /// The `Content-Range`, which must be present.
    pub(crate) fn content_range(&self) -> Result<ContentRange, RequestError> {
        let range = self.header(CONTENT_RANGE).and_then(ContentRange::parse);
        range.ok_or_else(|| RequestError::protocol("a partial response without a valid Content-Range"))
    }

    /// The metadata of a value of `size` bytes.
    pub(crate) fn info(&self, size: u64) -> Result<ValueMeta, RequestError> {
        let version = self.header(ETAG).and_then(etag::parse);
        let version = version.ok_or_else(|| RequestError::protocol("a value without the ETag of a version"))?;
        let modified = self.modified().ok_or_else(|| RequestError::protocol("a value without a modification time"))?;
        let attributes = attributes::from_headers(self.response.headers());
        let attributes = attributes.map_err(|error| RequestError::protocol(error.to_string()))?;
        Ok(ValueMeta { size, version, modified, attributes })
    }

    /// Reads the body, which must not be longer than `limit` bytes.
    pub(crate) async fn bytes(mut self, limit: usize) -> Result<Bytes, RequestError> {
        let mut body = BytesMut::new();
        while let Some(bytes) = self.next_bytes().await? {
            if bytes.len() > limit.saturating_sub(body.len()) {
                return Err(RequestError::protocol(format!("the body is longer than {limit} bytes")));
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body.freeze())
    }

    /// Reads the body as JSON.
    pub(crate) async fn json<T: DeserializeOwned>(self, limit: usize) -> Result<T, RequestError> {
        let bytes = self.bytes(limit).await?;
        serde_json::from_slice(&bytes).map_err(|error| RequestError::protocol(format!("unexpected JSON: {error}")))
    }

    /// Reads the next bytes of the body; `None` at its end.
    pub(crate) async fn next_bytes(&mut self) -> Result<Option<Bytes>, TransportError> {
        Ok(self.deadline.wait_for_server(self.response.chunk()).await??)
    }

    /// Reads and drops the rest of the body, so that the connection can be reused.
    pub(crate) async fn discard(self) {
        // If the body is cut off or too long, merely the connection is lost.
        let _ = self.bytes(MAX_PROBLEM_BYTES).await;
    }

    /// Reads an unsuccessful response.
    pub(crate) async fn into_error_response(self) -> ErrorResponse {
        let (status, request, retry_after) = (self.status(), self.request_id(), self.retry_after());
        let content_type = self.header(CONTENT_TYPE).unwrap_or_default();
        let has_problem = content_type.split(';').next().is_some_and(|kind| kind.trim() == headers::PROBLEM_JSON);
        let problem = match self.bytes(MAX_PROBLEM_BYTES).await {
            Ok(body) if has_problem => Problem::from_json(&body),
            // Without the document, the status determines the error.
            _ => None,
        };
        ErrorResponse { status, request, retry_after, problem }
    }

    fn retry_after(&self) -> Option<Duration> {
        let text = self.header(RETRY_AFTER)?.trim();
        match text.parse() {
            Ok(seconds) => Some(Duration::from_secs(seconds)),
            Err(_) => time::parse_http_date(text)?.duration_since(SystemTime::now()).ok(),
        }
    }

    fn modified(&self) -> Option<SystemTime> {
        let precise = self.header(headers::MODIFIED).and_then(time::parse_rfc3339);
        precise.or_else(|| self.header(LAST_MODIFIED).and_then(time::parse_http_date))
    }
}

impl ErrorResponse {
    /// The type of the problem document.
    pub(crate) fn kind(&self) -> Option<ProblemType> {
        self.problem.as_ref().map(|problem| problem.kind)
    }

    /// Converts the response into a failure: by its problem document, or without one by its status.
    pub(crate) fn into_failure<E>(
        mut self,
        from_problem: impl FnOnce(&Self, Problem) -> E,
        from_status: impl FnOnce(&Self) -> E,
    ) -> FailedAttempt<E> {
        let (execution, retry_after) = (self.execution(), self.retry_after);
        let error = match self.problem.take() {
            Some(problem) => from_problem(&self, problem),
            None => from_status(&self),
        };
        FailedAttempt { error, execution, retry_after }
    }

    /// The execution state of the request.
    pub(crate) fn execution(&self) -> Execution {
        match (self.kind(), self.status) {
            (
                Some(
                    ProblemType::Busy
                    | ProblemType::AccessUnavailable
                    | ProblemType::StoreUnavailable
                    | ProblemType::TooManyConflicts
                    | ProblemType::ValueChanged
                    | ProblemType::TooManyRequests,
                ),
                _,
            ) => Execution::NotExecuted,
            // The store may have been closed while the change was in progress.
            (Some(ProblemType::ShuttingDown), _) => Execution::Unknown,
            (None, StatusCode::TOO_MANY_REQUESTS) => Execution::NotExecuted,
            (None, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT) => {
                Execution::Unknown
            }
            _ => Execution::Final,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn execution_state_depends_on_the_problem_type() {
        for &kind in ProblemType::ALL {
            let (status, retry_after) = (kind.status(), Some(Duration::from_secs(9)));
            let problem = Some(Problem::new(kind));
            let response = ErrorResponse { status, request: String::new(), retry_after, problem };
            let expected = match kind {
                ProblemType::Busy
                | ProblemType::AccessUnavailable
                | ProblemType::StoreUnavailable
                | ProblemType::TooManyConflicts
                | ProblemType::ValueChanged
                | ProblemType::TooManyRequests => Execution::NotExecuted,
                ProblemType::ShuttingDown => Execution::Unknown,
                _ => Execution::Final,
            };
            let failed = response.into_failure(|_, problem| Some(problem.kind), |_| None);
            assert_eq!((failed.error, failed.execution), (Some(kind), expected));
            assert_eq!(failed.retry_after, retry_after);
        }
    }
}
