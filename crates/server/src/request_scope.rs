//! The scope of every request: id, common headers, metrics, logging, and panics.

use std::{panic::AssertUnwindSafe, time::Instant};

use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use http::{
    HeaderValue, Method,
    header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE},
};
use http_body::Body as _;
use zarrd_wire::{headers::REQUEST_ID, problem::ProblemType};

use crate::{
    app::App,
    authorization::Session,
    error::ApiError,
    guard,
    metrics::InFlightGuard,
    request_body::BodyCompletion,
    request_id::RequestId,
    request_log::{LoggedPath, LoggedRequest, LoggedText, RequestRecord, RouteName},
    response_body::{empty_body_of_unknown_length, instrumented_body},
};

/// Bodies up to this size, in bytes, count as sent when they are passed on; larger ones are instrumented.
const UNWATCHED_BODY_LIMIT: u64 = 64 << 10;

/// A response, and the session on whose behalf it was made.
pub(crate) struct Handled {
    response: Response,
    /// `None` for an anonymous caller, and for a request that was rejected before its caller's rights were known.
    session: Option<Session>,
    /// The error that the response is already the rendering of.
    rendered: Option<ApiError>,
}

impl Handled {
    /// A response to a session.
    pub(crate) fn new(response: Response, session: Session) -> Self {
        Self { session: session.is_identified().then_some(session), ..Self::from(response) }
    }

    /// The same response, which shows an error in a form of its own.
    pub(crate) fn with_rendered(self, rendered: Option<ApiError>) -> Self {
        Self { rendered, ..self }
    }
}

impl From<Response> for Handled {
    fn from(response: Response) -> Self {
        Self { response, session: None, rendered: None }
    }
}

impl From<ApiError> for Handled {
    fn from(error: ApiError) -> Self {
        error.into_response().into()
    }
}

/// Handles a request in its scope. `name` is the name of its operation in the logs and the metrics.
pub(crate) async fn run<F>(app: App, request: Request, name: RouteName, handle: impl FnOnce(Request) -> F) -> Response
where
    F: Future<Output = Result<Handled, ApiError>>,
{
    let (request, completion) = BodyCompletion::watch(request);
    let scope = RequestScope::start(&app, &request, name);
    let chunked = guard::is_chunked(request.headers());
    let request = scope.attach(request);
    let outcome = AssertUnwindSafe(handle(request)).catch_unwind().await;
    let handled = match outcome {
        Ok(handled) => handled.unwrap_or_else(Handled::from),
        Err(panic) => ApiError::with_cause(ProblemType::Internal, panic_message(&*panic)).into(),
    };
    let mut response = scope.finish(handled);
    completion.close_if_incomplete(&mut response);
    if chunked {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Begins the lines of a request in the logs, if any is on.
pub(crate) fn log(app: &App, request: &Request, id: &RequestId, name: RouteName) -> Option<LoggedRequest> {
    app.logs().is_on().then(|| LoggedRequest::start(app.logs(), request, id, name))
}

/// Records the caller of a request in its lines.
pub(crate) fn record_principal(request: &Request, session: &Session) {
    if let Some(record) = RequestRecord::of(request.extensions())
        && let Some(name) = session.log_name()
    {
        record.set_principal(name);
    }
}

/// The state of a request from its arrival until its response is sent.
struct RequestScope {
    id: RequestId,
    method: Method,
    path: Option<LoggedPath>,
    template: Option<&'static str>,
    started: Instant,
    in_flight: InFlightGuard,
    /// `None` if all request logs are off.
    logged: Option<LoggedRequest>,
}

impl RequestScope {
    fn start(app: &App, request: &Request, name: RouteName) -> Self {
        let method = request.method().clone();
        // The path is only logged at this level.
        let path = tracing::enabled!(tracing::Level::DEBUG).then(|| LoggedPath::of(request));
        let in_flight = app.metrics().start_request();
        let id = app.request_ids().of(request.headers());
        let logged = log(app, request, &id, name);
        Self { id, method, path, template: name.template, started: Instant::now(), in_flight, logged }
    }

    /// Adds what guards and handlers need for the request's lines in the logs.
    fn attach(&self, request: Request) -> Request {
        match &self.logged {
            Some(logged) => logged.attach(request),
            None => request,
        }
    }

    fn finish(mut self, Handled { mut response, session, rendered }: Handled) -> Response {
        let error = rendered.or_else(|| {
            let error = ApiError::take_from(&mut response)?;
            response = error.to_response(&self.id);
            Some(error)
        });
        if let Some(error) = &error {
            error.log(&self.id);
        }
        let problem = error.as_ref().map(ApiError::problem_type);
        if let Some(session) = session {
            session.mark(&mut response);
        }
        let headers = response.headers_mut();
        headers.insert(REQUEST_ID, self.id.header());
        guard::add_common_headers(headers);
        if self.method == Method::HEAD {
            response = without_body(response);
        }
        self.record(&response);
        let logged = self.logged.take();
        let response = self.instrument(response);
        match logged {
            Some(logged) => logged.respond(response, problem),
            None => response,
        }
    }

    fn record(&self, response: &Response) {
        let template = self.template.unwrap_or("none");
        let (status, elapsed) = (response.status(), self.started.elapsed());
        self.in_flight.record_response(template, &self.method, status, elapsed);
        if let Some(path) = &self.path {
            let (method, status) = (LoggedText(self.method.as_str()), status.as_u16());
            tracing::debug!(request = %self.id, %method, %path, status, ?elapsed, "request completed");
        }
    }

    /// Counts the bytes of the body; a streamed body extends the request until it ends.
    fn instrument(self, response: Response) -> Response {
        match response.body().size_hint().exact() {
            Some(size) if size <= UNWATCHED_BODY_LIMIT => {
                self.in_flight.record_sent(size);
                response
            }
            _ => response.map(|body| instrumented_body(body, self.id, self.in_flight)),
        }
    }
}

/// The response to `HEAD`: the response to `GET` without its body, but with its length.
fn without_body(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let described = parts.headers.contains_key(CONTENT_TYPE) && !parts.headers.contains_key(CONTENT_LENGTH);
    let size = body.size_hint().exact();
    if let Some(size) = size.filter(|_| described) {
        parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(size));
    }
    let body = if size.is_some() { Body::empty() } else { empty_body_of_unknown_length() };
    Response::from_parts(parts, body)
}

/// The message of a panic.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("handler panicked: {}", text.unwrap_or("no message"))
}
