//! The mapping from errors to problem documents (RFC 9457).

use std::sync::Arc;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{
    HeaderName, HeaderValue, Method, StatusCode,
    header::{ALLOW, CONTENT_RANGE, CONTENT_TYPE, ETAG, RETRY_AFTER, WWW_AUTHENTICATE},
};
use zarrd_codec::CodecError;
use zarrd_meta::NodePath;
use zarrd_store::{Admitted, BoxError, Key, ReadError, Version, WarningRate};
use zarrd_wire::{
    digest::DigestError,
    etag::{self, EtagError},
    headers::PROBLEM_JSON,
    near::nearest,
    picture::ColorMap,
    problem::{Members, Problem, ProblemType},
    query::{CONFIRM, QueryError},
    range::ContentRange,
    routes::PathError,
};

use crate::{
    request_id::RequestId,
    request_log::{LoggedError, LoggedText},
};

mod from_access;
pub(crate) use from_access::{BEARER_CHALLENGE, RightsLost};
mod from_array;
mod from_compute;
mod from_coordinates;
mod from_dataset;
mod from_dav;
mod from_node;
mod from_store;
mod from_write;

/// The warnings about requests that could not be served, by problem type.
static WARNINGS: WarningRate = WarningRate::new();

/// The paths where clients begin.
const ENTRY_POINTS: [&str; 8] =
    ["/store/", "/node/", "/array/", "/browse/", "/openapi.yaml", "/healthz", "/readyz", "/metrics"];

/// The length of a path in a message, in characters.
const MAX_SHOWN_PATH: usize = 200;

/// The beginning of a path.
fn truncated(path: &str) -> String {
    path.chars().take(MAX_SHOWN_PATH).collect()
}

/// A request error: a problem document for the client, and a cause for the log.
///
/// As a response it is a placeholder, which [`take_from`](Self::take_from) finds and [`to_response`](Self::to_response)
/// replaces with the document once the request's id is known.
#[derive(Clone, Debug)]
pub(crate) struct ApiError(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    problem: Problem,
    headers: Vec<(HeaderName, HeaderValue)>,
    cause: Option<BoxError>,
    /// The body if it is not the problem document: its media type, and its text.
    body: Option<(HeaderValue, &'static str)>,
}

impl ApiError {
    pub(crate) fn new(problem: Problem) -> Self {
        Self::build(problem, Vec::new(), None)
    }

    pub(crate) fn with_header(problem: Problem, name: HeaderName, value: HeaderValue) -> Self {
        Self::build(problem, vec![(name, value)], None)
    }

    /// An error whose cause is logged, but not sent to the client.
    pub(crate) fn with_cause(kind: ProblemType, cause: impl Into<BoxError>) -> Self {
        Self::build(Problem::new(kind), Vec::new(), Some(cause.into()))
    }

    /// The same error with other members of its document.
    pub(crate) fn with_members(self, change: impl FnOnce(&mut Members)) -> Self {
        let mut problem = self.0.problem.clone();
        change(&mut problem.members);
        Self::new(problem)
    }

    /// The same error, about one of several arrays.
    pub(crate) fn in_array(self, name: &str) -> Self {
        match Arc::try_unwrap(self.0) {
            Ok(mut parts) => {
                let shown: String = name.chars().take(64).collect();
                parts.problem.detail = format!("{shown}: {}", parts.problem.message());
                parts.problem.members.array.get_or_insert(shown);
                Self(Arc::new(parts))
            }
            // Someone else has it too.
            Err(shared) => Self(shared),
        }
    }

    /// An invalid header.
    pub(crate) fn invalid_header(name: &'static str, detail: impl Into<String>) -> Self {
        let members = Members { header: Some(name.to_owned()), ..Members::default() };
        Self::new(Problem::new(ProblemType::InvalidHeader).with_detail(detail).with_members(members))
    }

    /// The caller is not identified.
    pub(crate) fn unauthorized(detail: impl Into<String>, challenge: HeaderValue) -> Self {
        Self::with_header(Problem::new(ProblemType::Unauthorized).with_detail(detail), WWW_AUTHENTICATE, challenge)
    }

    /// The caller lacks a right.
    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(Problem::new(ProblemType::Forbidden).with_detail(detail))
    }

    /// No resource exists at the path: the problem names those where clients begin, and the path that was probably meant.
    pub(crate) fn not_found(base: &str, path: &str) -> Self {
        let relative = path.trim_start_matches('/');
        let (first, rest) = relative.split_once('/').map_or((relative, ""), |(first, rest)| (first, rest));
        let names = ENTRY_POINTS.map(|entry| entry.trim_matches('/'));
        let meant = nearest(first, names).filter(|name| *name != first);
        let meant = meant.map(|name| match rest {
            "" => format!("; did you mean {base}/{name}?"),
            rest => format!("; did you mean {base}/{name}/{}?", truncated(rest)),
        });
        let known = ENTRY_POINTS.iter().map(|entry| format!("{base}{entry}")).collect();
        let detail = format!("there is nothing at {}{}", truncated(path), meant.unwrap_or_default());
        let members = Members { known: Some(known), ..Members::default() };
        Self::new(Problem::new(ProblemType::NotFound).with_detail(detail).with_members(members))
    }

    /// The path is not a valid node path.
    pub(crate) fn invalid_path(error: PathError) -> Self {
        Self::new(Problem::new(ProblemType::InvalidPath).with_detail(error.to_string()))
    }

    /// The key has no value.
    pub(crate) fn no_such_key(key: &zarrd_store::Key) -> Self {
        let members = Members { key: Some(key.to_string()), ..Members::default() };
        Self::new(Problem::new(ProblemType::NoSuchKey).with_members(members))
    }

    /// No key exists below the prefix.
    pub(crate) fn no_such_prefix(prefix: &zarrd_store::Prefix) -> Self {
        let detail = format!("no key exists below {prefix}");
        Self::new(Problem::new(ProblemType::NoSuchKey).with_detail(detail))
    }

    /// Keys exist below the prefix; `key` is one of them.
    pub(crate) fn prefix_not_empty(prefix: &zarrd_store::Prefix, key: &zarrd_store::Key, detail: String) -> Self {
        let members = Members { key: Some(key.to_string()), prefix: Some(prefix.to_string()), ..Members::default() };
        Self::new(Problem::new(ProblemType::PrefixNotEmpty).with_detail(detail).with_members(members))
    }

    /// The resource does not support the method.
    pub(crate) fn method_not_allowed(method: &Method, allow: &str) -> Self {
        let methods = allow.split(", ").map(str::to_owned).collect();
        let problem = Problem::new(ProblemType::MethodNotAllowed)
            .with_detail(format!("this resource does not support {method}"))
            .with_members(Members { allow: methods, ..Members::default() });
        let value = HeaderValue::from_str(allow).unwrap_or(HeaderValue::from_static(""));
        Self::with_header(problem, ALLOW, value)
    }

    /// Erasing everything needs confirmation.
    pub(crate) fn confirmation_required(what: &str) -> Self {
        let problem = Problem::new(ProblemType::ConfirmationRequired)
            .with_detail(format!("{what}; confirm with confirm=all"))
            .with_members(Members { parameter: Some(CONFIRM.to_owned()), ..Members::default() });
        Self::new(problem)
    }

    /// Elements were sent with the media type of forms, as `curl -d` does; `known` lists the supported types.
    pub(crate) fn form_media_type(known: &[&str]) -> Self {
        let detail = "`curl -d` sends the media type of forms; send JSON with `--json`, or raw bytes with \
                      `-H 'Content-Type: application/octet-stream'`";
        let mut problem = Self::unsupported_media_type(known).0.problem.clone();
        problem.detail = detail.to_owned();
        Self::new(problem)
    }

    /// The media type of the body is not supported; `known` lists those that are.
    pub(crate) fn unsupported_media_type(known: &[&str]) -> Self {
        let known = known.iter().map(|&known| known.to_owned()).collect();
        let members = Members { header: Some("Content-Type".to_owned()), known: Some(known), ..Members::default() };
        Self::new(Problem::new(ProblemType::UnsupportedMediaType).with_members(members))
    }

    /// The range does not overlap the response of `size` bytes.
    pub(crate) fn range_not_satisfiable(size: u64, version: Option<Version>) -> Self {
        let problem = Problem::new(ProblemType::RangeNotSatisfiable)
            .with_detail(format!("the response has {size} bytes"))
            .with_members(Members { size: Some(size), ..Members::default() });
        let content_range = HeaderValue::try_from(ContentRange { range: None, size }.render());
        let headers = content_range.into_iter().map(|content_range| (CONTENT_RANGE, content_range));
        let headers = headers.chain(version.map(|version| (ETAG, etag::render(version))));
        Self::build(problem, headers.collect(), None)
    }

    /// The body exceeds a limit.
    pub(crate) fn body_too_large(limit: u64) -> Self {
        let problem = Problem::new(ProblemType::BodyTooLarge)
            .with_detail(format!("the body exceeds the limit of {limit} bytes"))
            .with_members(Members { limit: Some(limit), ..Members::default() });
        Self::new(problem)
    }

    /// The server is overloaded.
    pub(crate) fn busy(retry_after: Option<std::time::Duration>) -> Self {
        let seconds = retry_after.map_or(1, |wait| wait.as_secs().max(1));
        Self::with_header(Problem::new(ProblemType::Busy), RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// All connections, or requests that share one, are busy.
    pub(crate) fn too_many_connections(limit: usize) -> Self {
        let detail = format!("all of the {limit} connections that may be open are busy (--max-connections)");
        let members = Members { limit: u64::try_from(limit).ok(), ..Members::default() };
        let problem = Problem::new(ProblemType::Busy).with_detail(detail).with_members(members);
        Self::with_header(problem, RETRY_AFTER, HeaderValue::from(1))
    }

    /// A transient error: the server is overloaded, or the client has reached its share while others wait.
    fn retry_later(kind: ProblemType, detail: String) -> Self {
        Self::retry_after(kind, detail, std::time::Duration::from_secs(1))
    }

    /// A transient error, and the time after which the request may succeed.
    pub(crate) fn retry_after(kind: ProblemType, detail: String, wait: std::time::Duration) -> Self {
        Self::with_header(Problem::new(kind).with_detail(detail), RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)))
    }

    /// Takes the error out of the response that it was converted to.
    pub(crate) fn take_from(response: &mut Response) -> Option<Self> {
        response.extensions_mut().remove()
    }

    /// Returns the response with the problem document.
    pub(crate) fn to_response(&self, id: &RequestId) -> Response {
        let (content_type, body) = match &self.0.body {
            Some((content_type, body)) => (content_type.clone(), Body::from(*body)),
            None => {
                let problem = Problem { request: id.to_string(), ..self.0.problem.clone() };
                (PROBLEM_JSON, Body::from(problem.to_json()))
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status();
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response.headers_mut().extend(self.0.headers.iter().cloned());
        response
    }

    /// Logs the error: failures of the server at a high level with their cause, errors of clients at debug level.
    /// Anybody can overload a server, so the warnings of each kind are few, and the others are at debug level too.
    pub(crate) fn log(&self, id: &RequestId) {
        let Parts { problem, cause, .. } = &*self.0;
        let kind = problem.kind.slug();
        let cause = cause.as_deref().map(|cause| tracing::field::display(LoggedError(cause)));
        let key = problem.members.key.as_deref().map(|key| tracing::field::display(LoggedText(key)));
        match problem.kind {
            ProblemType::Internal | ProblemType::CorruptValue => {
                tracing::error!(request = %id, problem = kind, key, error = cause, "request failed");
            }
            // The client asked for an unsupported feature; the server did not fail.
            ProblemType::UnsupportedNode | ProblemType::Unsupported => {
                tracing::debug!(request = %id, problem = kind, key, error = cause, "request rejected");
            }
            _ if self.status().is_server_error()
                && let Some(Admitted { left_out }) = WARNINGS.admit(kind) =>
            {
                tracing::warn!(request = %id, problem = kind, key, error = cause, left_out, "request could not be served");
            }
            _ => tracing::debug!(request = %id, problem = kind, key, error = cause, "request rejected"),
        }
    }

    fn build(problem: Problem, headers: Vec<(HeaderName, HeaderValue)>, cause: Option<BoxError>) -> Self {
        Self(Arc::new(Parts { problem, headers, cause, body: None }))
    }

    /// The type of the problem.
    pub(crate) fn problem_type(&self) -> ProblemType {
        self.0.problem.kind
    }

    /// The message for the client.
    pub(crate) fn message(&self) -> &str {
        self.0.problem.message()
    }

    /// The headers of the response.
    pub(crate) fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.0.headers
    }

    fn status(&self) -> StatusCode {
        self.problem_type().status()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status();
        response.extensions_mut().insert(self);
        response
    }
}

impl ReadError for ApiError {
    fn is_changed(&self) -> bool {
        self.problem_type() == ProblemType::ValueChanged
    }
}

impl From<PathError> for ApiError {
    fn from(error: PathError) -> Self {
        Self::new(Problem::new(ProblemType::InvalidKey).with_detail(error.to_string()))
    }
}

impl From<EtagError> for ApiError {
    fn from(error: EtagError) -> Self {
        Self::invalid_header(error.header, error.to_string())
    }
}

impl From<DigestError> for ApiError {
    fn from(error: DigestError) -> Self {
        Self::invalid_header("Content-Digest", error.to_string())
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        let texts = |known: &[&str]| Some(known.iter().map(|&name| name.to_owned()).collect());
        let detail = error.to_string();
        let (kind, parameter, known) = match error {
            QueryError::Unknown { name, known } => (ProblemType::UnknownParameter, name, texts(known)),
            QueryError::Repeated { name, known } => (ProblemType::DuplicateParameter, name.to_owned(), texts(known)),
            QueryError::Missing { names, known } => {
                let first = names.first().copied().unwrap_or_default();
                (ProblemType::MissingParameter, first.to_owned(), texts(known))
            }
            QueryError::UnknownColorMap { .. } => {
                let known = ColorMap::names();
                (ProblemType::InvalidParameter, zarrd_wire::query::CMAP.to_owned(), texts(&known))
            }
            QueryError::Invalid { name, .. } => (ProblemType::InvalidParameter, name.to_owned(), None),
            QueryError::UnknownListing { .. } => {
                (ProblemType::UnknownListing, zarrd_wire::query::LIST.to_owned(), texts(&["dir", "keys"]))
            }
        };
        let members = Members { parameter: Some(parameter), known, ..Members::default() };
        Self::new(Problem::new(kind).with_detail(detail).with_members(members))
    }
}

/// The error of a chunk that cannot be encoded.
fn unencodable_chunk(key: &Key, error: &CodecError) -> ApiError {
    let members = Members { key: Some(key.to_string()), codec: Some(error.codec().to_owned()), ..Members::default() };
    let problem = Problem::new(ProblemType::UnencodableChunk).with_detail(error.to_string());
    ApiError::new(problem.with_members(members))
}

/// Problem members that name a node.
fn path_members(path: &NodePath) -> Members {
    Members { path: Some(path.to_string()), ..Members::default() }
}
