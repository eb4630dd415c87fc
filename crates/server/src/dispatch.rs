//! The scope of every request: id, guards, dispatch to a handler, common headers, metrics and logging.

use std::{panic::AssertUnwindSafe, time::Instant};

use axum::{
    Router,
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use http::{
    HeaderValue, Method, Uri,
    header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE},
};
use http_body::Body as _;
use zarrd_array::RemovedCopies;
use zarrd_wire::{
    headers::{CONSOLIDATED, REQUEST_ID},
    problem::ProblemType,
};

use crate::{
    admission,
    app::App,
    authorization::{self, Session},
    error::ApiError,
    guard,
    headers::removed_copies,
    metrics::InFlightGuard,
    request_body::BodyCompletion,
    request_id::RequestId,
    request_log::{LoggedPath, LoggedRequest, LoggedText, OperationName, RequestRecord, RouteName},
    response_body::{empty_body_of_unknown_length, instrumented_body},
    routes::{Route, Safety},
    surface::Surface,
};

/// Bodies up to this size, in bytes, count as sent when they are passed on; larger ones are instrumented.
const UNWATCHED_BODY_LIMIT: u64 = 64 << 10;

/// A service that handles requests without the connection limits of [`serve`](crate::serve()).
pub fn router(app: App) -> Router {
    Router::new().fallback(move |mut request| {
        strip_base_path(&app, &mut request);
        handle(app, request)
    })
}

/// A service like [`router`], for the requests of a surface.
pub fn surface_router(app: App, surface: Surface) -> Router {
    match surface {
        Surface::Api => router(app),
        Surface::Root => Router::new().fallback(move |mut request| {
            surface.enter(&mut request);
            handle(app, request)
        }),
    }
}

/// Handles any request whose path has no base path.
pub(crate) async fn handle(app: App, request: Request) -> Response {
    let (mut request, completion) = BodyCompletion::watch(request);
    authorization::strip_share_link(&mut request);
    let scope = RequestScope::start(&app, &request);
    let chunked = guard::is_chunked(request.headers());
    let request = scope.attach(request);
    let outcome = AssertUnwindSafe(dispatch(app, request, scope.route)).catch_unwind().await;
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

/// Removes the base path from the beginning of a path, if it has one. From here on no part of the server sees it.
pub(crate) fn strip_base_path(app: &App, request: &mut Request) {
    let uri = request.uri();
    let Some(rest) = app.settings().base_path.strip(uri.path()) else { return };
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let Ok(rest) = format!("{rest}{query}").try_into() else { return };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(rest);
    // A URI with a valid path and no other change is valid.
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
}

/// Answers a request with an error without handling it. The response has no effect on the metrics of requests.
pub(crate) fn reject(app: &App, request: &Request, error: ApiError) -> Response {
    let id = app.request_ids().of(request.headers());
    let logged = log(app, request, &id, Route::find(request.method(), request.uri().path()));
    error.log(&id);
    let mut response = error.to_response(&id);
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, id.header());
    guard::add_common_headers(headers);
    match logged {
        Some(logged) => logged.respond(response, Some(error.problem_type())),
        None => response,
    }
}

/// A response, and the session on whose behalf it was made.
struct Handled {
    response: Response,
    /// `None` for an anonymous caller, and for a request that was rejected before its caller's rights were known.
    session: Option<Session>,
}

impl From<Response> for Handled {
    fn from(response: Response) -> Self {
        Self { response, session: None }
    }
}

impl From<ApiError> for Handled {
    fn from(error: ApiError) -> Self {
        error.into_response().into()
    }
}

async fn dispatch(app: App, mut request: Request, route: Option<&'static Route>) -> Result<Handled, ApiError> {
    let (method, headers) = (request.method(), request.headers());
    guard::check_host(&app, request.version(), request.uri(), headers)?;
    guard::check_proxy_headers(request.extensions(), headers)?;
    guard::check_framing(headers)?;
    let nothing = || ApiError::not_found(app.settings().base_path.as_str(), request.uri().path());
    let route = route.ok_or_else(nothing)?;
    let query = request.uri().query().unwrap_or_default();
    if method == Method::OPTIONS {
        return Ok(guard::preflight(&app, route, request.uri(), headers).into());
    }
    let operation = route.operation(method, query);
    let operation = operation
        .ok_or_else(|| ApiError::method_not_allowed(method, &guard::allowed_methods(&app, route, request.uri())))?;
    let link = request.extensions().get().cloned();
    let session = authorization::authenticate(&app, headers, query, link).await?;
    if let Some(record) = RequestRecord::of(request.extensions())
        && let Some(name) = session.log_name()
    {
        record.set_principal(name);
    }
    let target = authorization::authorize(&app, route, operation, &request, &session)?;
    guard::check_mutation(&app, operation, &session, headers)?;
    operation.check_supported(&app, request.uri())?;
    // Such a request uses nothing that is cached from before; nothing changes for others.
    let not_before = guard::asks_for_current(headers).then(tokio::time::Instant::now);
    admission::attach(&app, &session, target, &mut request);
    let removed = (operation.safety == Safety::Unsafe).then(RemovedCopies::default);
    if let Some(removed) = &removed {
        request.extensions_mut().insert(removed.clone());
    }
    let mut response = zarrd_array::run_request(zarrd_store::not_before(not_before, operation.run(request, app))).await;
    response.headers_mut().extend(removed.and_then(removed_copies).map(|removed| (CONSOLIDATED, removed)));
    Ok(Handled { response, session: session.is_identified().then_some(session) })
}

/// The state of a request from its arrival until its response is sent.
struct RequestScope {
    id: RequestId,
    method: Method,
    path: Option<LoggedPath>,
    route: Option<&'static Route>,
    started: Instant,
    in_flight: InFlightGuard,
    /// `None` if all request logs are off.
    logged: Option<LoggedRequest>,
}

impl RequestScope {
    fn start(app: &App, request: &Request) -> Self {
        let method = request.method().clone();
        let route = Route::find(&method, request.uri().path());
        // The path is only logged at this level.
        let path = tracing::enabled!(tracing::Level::DEBUG).then(|| LoggedPath::of(request));
        let in_flight = app.metrics().start_request();
        let id = app.request_ids().of(request.headers());
        let logged = log(app, request, &id, route);
        Self { id, method, path, route, started: Instant::now(), in_flight, logged }
    }

    /// Adds what guards and handlers need for the request's lines in the logs.
    fn attach(&self, request: Request) -> Request {
        match &self.logged {
            Some(logged) => logged.attach(request),
            None => request,
        }
    }

    fn finish(mut self, Handled { mut response, session }: Handled) -> Response {
        let error = ApiError::take_from(&mut response);
        let problem = error.as_ref().map(ApiError::problem_type);
        if let Some(error) = error {
            error.log(&self.id);
            response = error.to_response(&self.id);
        }
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
        let template = self.route.map_or("none", |route| route.template);
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

/// Begins the lines of a request in the logs, if any is on.
fn log(app: &App, request: &Request, id: &RequestId, route: Option<&'static Route>) -> Option<LoggedRequest> {
    if !app.logs().is_on() {
        return None;
    }
    let operation =
        route.and_then(|route| route.operation(request.method(), request.uri().query().unwrap_or_default()));
    let operation = operation.map(|operation| OperationName {
        selected_by: operation.selected_by,
        is_unsafe: operation.safety == Safety::Unsafe,
    });
    let route = RouteName { template: route.map(|route| route.template), operation };
    Some(LoggedRequest::start(app.logs(), request, id, route))
}

/// The response to `HEAD`: that of `GET` without its body, but with its length.
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
