//! The scope of every request: id, guards, dispatch to a handler, common headers, metrics and logging.

use std::{panic::AssertUnwindSafe, time::Instant};

use axum::{
    Router,
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{FutureExt, stream};
use http::{
    HeaderValue, Method,
    header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE},
};
use http_body::Body as _;
use wire::{headers::REQUEST_ID, problem::ProblemType};

use crate::{
    app::App, error::ApiError, guard, memory_claim, metrics::InFlightGuard, request_body::BodyCompletion,
    request_id::RequestId, response_body::InstrumentedBody, routes::Route,
};

/// Bodies up to this size, in bytes, count as sent when they are passed on; larger ones are instrumented.
const UNWATCHED_BODY_LIMIT: u64 = 64 << 10;

/// A service that handles requests without the connection limits of [`serve`](crate::serve()).
pub fn router(app: App) -> Router {
    Router::new().fallback(move |request| handle(app, request))
}

/// Handles any request.
pub(crate) async fn handle(app: App, request: Request) -> Response {
    let scope = RequestScope::start(&app, &request);
    let chunked = guard::is_chunked(request.headers());
    let (mut request, completion) = BodyCompletion::watch(request);
    memory_claim::attach(&app, &mut request);
    let outcome = AssertUnwindSafe(dispatch(app, request, scope.route)).catch_unwind().await;
    let response = match outcome {
        Ok(response) => response.unwrap_or_else(IntoResponse::into_response),
        Err(panic) => ApiError::with_cause(ProblemType::Internal, panic_message(&*panic)).into_response(),
    };
    let mut response = scope.finish(response);
    completion.close_if_incomplete(&mut response);
    if chunked {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn dispatch(app: App, request: Request, route: Option<&'static Route>) -> Result<Response, ApiError> {
    let (method, headers) = (request.method(), request.headers());
    guard::check_host(&app, request.version(), request.uri(), headers)?;
    guard::check_proxy_headers(request.extensions(), headers)?;
    guard::check_framing(headers)?;
    let route = route.ok_or_else(ApiError::not_found)?;
    let query = request.uri().query().unwrap_or_default();
    if method == Method::OPTIONS {
        return Ok(guard::preflight(&app, route, query, headers));
    }
    let operation = route.operation(method, query);
    let operation =
        operation.ok_or_else(|| ApiError::method_not_allowed(method, &guard::allowed_methods(&app, route, query)))?;
    guard::check_mutation(&app, operation.safety, headers)?;
    Ok(array::run_request(operation.run(request, app)).await)
}

/// The state of a request from its arrival until its response is sent.
struct RequestScope {
    id: RequestId,
    method: Method,
    path: Option<String>,
    route: Option<&'static Route>,
    started: Instant,
    in_flight: InFlightGuard,
}

impl RequestScope {
    fn start(app: &App, request: &Request) -> Self {
        let method = request.method().clone();
        let route = Route::find(&method, request.uri().path());
        // The path is only logged at this level.
        let path = tracing::enabled!(tracing::Level::DEBUG).then(|| request.uri().path().to_owned());
        let in_flight = app.metrics().start_request();
        Self { id: app.request_ids().of(request.headers()), method, path, route, started: Instant::now(), in_flight }
    }

    fn finish(self, mut response: Response) -> Response {
        if let Some(error) = ApiError::take_from(&mut response) {
            error.log(&self.id);
            response = error.to_response(&self.id);
        }
        let headers = response.headers_mut();
        headers.insert(REQUEST_ID, self.id.header());
        guard::add_common_headers(headers);
        if self.method == Method::HEAD {
            response = without_body(response);
        }
        self.record(&response);
        self.instrument(response)
    }

    fn record(&self, response: &Response) {
        let template = self.route.map_or("none", |route| route.template);
        let (status, elapsed) = (response.status(), self.started.elapsed());
        self.in_flight.record_response(template, &self.method, status, elapsed);
        if let Some(path) = &self.path {
            let status = status.as_u16();
            tracing::debug!(request = %self.id, method = %self.method, path, status, ?elapsed, "request completed");
        }
    }

    /// Counts the bytes of the body; a streamed body extends the request until it ends.
    fn instrument(self, response: Response) -> Response {
        match response.body().size_hint().exact() {
            Some(size) if size <= UNWATCHED_BODY_LIMIT => {
                self.in_flight.record_sent(size);
                response
            }
            _ => response.map(|body| Body::new(InstrumentedBody::new(body, self.id, self.in_flight))),
        }
    }
}

/// The response to `HEAD`: that of `GET` without its body, but with its length.
fn without_body(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let described = parts.headers.contains_key(CONTENT_TYPE) && !parts.headers.contains_key(CONTENT_LENGTH);
    let size = body.size_hint().exact();
    if let Some(size) = size.filter(|_| described) {
        parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(size));
    }
    // An empty body of known length would set a length of 0.
    let empty = stream::empty::<Result<Bytes, std::convert::Infallible>>();
    let body = if size.is_some() { Body::empty() } else { Body::from_stream(empty) };
    Response::from_parts(parts, body)
}

/// The message of a panic.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("handler panicked: {}", text.unwrap_or("no message"))
}
