//! What answers say.

use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use reqwest::{
    Response, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderName, LAST_MODIFIED, LOCATION, RETRY_AFTER},
};
use serde::de::DeserializeOwned;
use store::{Key, StoreError, ValueMeta};
use wire::{
    etag, headers,
    problem::{Problem, ProblemType},
    range::ContentRange,
    time,
};

use crate::{
    failure::{Failure, Fault, Knowledge, TransportError},
    problem,
    transport::Clock,
};

/// The longest problem document that is read.
const MAX_PROBLEM: usize = 64 * 1024;

/// An answer whose head has come.
pub(crate) struct Answer {
    response: Response,
    clock: Clock,
}

impl Answer {
    pub(crate) fn new(response: Response, clock: Clock) -> Self {
        Self { response, clock }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(crate) fn header(&self, name: HeaderName) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// The request's id, empty where there is none that could be one.
    pub(crate) fn request_id(&self) -> String {
        self.header(headers::REQUEST_ID).filter(|id| headers::is_request_id(id.as_bytes())).unwrap_or_default().into()
    }

    /// Where the answer sends one on to.
    pub(crate) fn location(&self) -> Option<&str> {
        self.header(LOCATION)
    }

    /// The length of the body.
    pub(crate) fn length(&self) -> Result<u64, Fault> {
        if self.header(CONTENT_ENCODING).is_some_and(|coding| !coding.eq_ignore_ascii_case("identity")) {
            return Err(Fault::protocol("a value came with a content coding"));
        }
        self.stated_length()?.ok_or_else(|| Fault::protocol("a value came without its length"))
    }

    /// The length of the body, with its content coding, where it is stated.
    pub(crate) fn stated_length(&self) -> Result<Option<u64>, Fault> {
        let length = self.header(CONTENT_LENGTH).map(str::parse).transpose();
        length.map_err(|_| Fault::protocol("an answer came with a length that is none"))
    }

    /// The part of the value that the body is, according to the header.
    pub(crate) fn content_range(&self) -> Result<ContentRange, Fault> {
        let range = self.header(CONTENT_RANGE).and_then(ContentRange::parse);
        range.ok_or_else(|| Fault::protocol("a partial answer came without a Content-Range"))
    }

    /// What is known of the value, whose size is stated in different headers.
    pub(crate) fn info(&self, size: u64) -> Result<ValueMeta, Fault> {
        let version = self.header(ETAG).and_then(etag::parse);
        let version = version.ok_or_else(|| Fault::protocol("a value came without an ETag of a version"))?;
        let modified = self.modified().ok_or_else(|| Fault::protocol("a value came without its time"))?;
        Ok(ValueMeta { size, version, modified })
    }

    /// Reads the whole body, which has at most `limit` bytes.
    pub(crate) async fn bytes(mut self, limit: usize) -> Result<Bytes, Fault> {
        let mut all = BytesMut::new();
        while let Some(piece) = self.piece().await? {
            if piece.len() > limit.saturating_sub(all.len()) {
                return Err(Fault::protocol(format!("the answer is longer than {limit} bytes")));
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }

    /// Reads the whole body as JSON.
    pub(crate) async fn json<T: DeserializeOwned>(self, limit: usize) -> Result<T, Fault> {
        let bytes = self.bytes(limit).await?;
        serde_json::from_slice(&bytes).map_err(|error| Fault::protocol(format!("the answer is not as agreed: {error}")))
    }

    /// The next bytes of the body, or `None` at its end.
    pub(crate) async fn piece(&mut self) -> Result<Option<Bytes>, TransportError> {
        Ok(self.clock.wait(self.response.chunk()).await??)
    }

    /// Reads what is left of a body that matters to nobody, so that the connection can be used again.
    pub(crate) async fn discard(self) {
        // A body that breaks off or is too long costs the connection and nothing else.
        let _ = self.bytes(MAX_PROBLEM).await;
    }

    /// What an answer means that is none of those hoped for.
    pub(crate) async fn into_failure(self, key: Option<&Key>) -> Failure<StoreError> {
        self.into_problem().await.into_failure(key)
    }

    /// Reads the problem document of an answer that is not a success.
    pub(crate) async fn into_problem(self) -> Refusal {
        let (status, request, retry_after) = (self.status(), self.request_id(), self.retry_after());
        let content_type = self.header(reqwest::header::CONTENT_TYPE).unwrap_or_default();
        let has_problem = content_type.split(';').next().is_some_and(|kind| kind.trim() == headers::PROBLEM_JSON);
        let problem = match self.bytes(MAX_PROBLEM).await {
            Ok(body) if has_problem => Problem::from_json(&body),
            // The status says enough where the document is lost.
            _ => None,
        };
        Refusal { status, request, retry_after, problem }
    }

    /// How long the server wants to be left alone.
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

/// An answer that is not a success.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) request: String,
    pub(crate) retry_after: Option<Duration>,
    /// The document, where there was one of a type that is known here.
    pub(crate) problem: Option<Problem>,
}

impl Refusal {
    /// The type of the problem document.
    pub(crate) fn kind(&self) -> Option<ProblemType> {
        self.problem.as_ref().map(|problem| problem.kind)
    }

    /// What is known of the request that was refused.
    pub(crate) fn knowledge(&self) -> Knowledge {
        match (self.kind(), self.status) {
            (Some(ProblemType::Busy | ProblemType::TooManyConflicts | ProblemType::TooManyRequests), _) => {
                Knowledge::NotDone
            }
            // Its store may have been closed with the change under way.
            (Some(ProblemType::ShuttingDown), _) => Knowledge::Unknown,
            (None, StatusCode::TOO_MANY_REQUESTS) => Knowledge::NotDone,
            (None, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT) => {
                Knowledge::Unknown
            }
            _ => Knowledge::Answered,
        }
    }

    /// The error, for a request that concerned `key`.
    pub(crate) fn into_failure(self, key: Option<&Key>) -> Failure<StoreError> {
        let (knowledge, retry_after) = (self.knowledge(), self.retry_after);
        Failure { error: problem::into_error(self, key), knowledge, retry_after }
    }
}

impl From<Refusal> for StoreError {
    fn from(refusal: Refusal) -> Self {
        refusal.into_failure(None).error
    }
}
