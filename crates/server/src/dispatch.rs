//! What surrounds every request: its id, the guards, the dispatch, the headers of every answer, metrics and the log.

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
    app::App, error::Refusal, guard, memory_claim, metrics::Running, request_body::Arrival, request_id::RequestId,
    response_body::Tracked, routes::Route,
};

/// Bodies up to this size count as sent when they are handed on; larger ones are watched as they go.
const SMALL: u64 = 64 << 10;

/// The surfaces of `app` as a service, without the connections that [`serve`](crate::serve()) adds.
pub fn app(app: App) -> Router {
    Router::new().fallback(move |request| answer(app, request))
}

/// Answers a request, whatever it is.
pub(crate) async fn answer(app: App, request: Request) -> Response {
    let exchange = Exchange::begin(&app, &request);
    let chunked = guard::is_chunked(request.headers());
    let (mut request, arrival) = Arrival::watch(request);
    memory_claim::begin(&app, &mut request);
    let answered = AssertUnwindSafe(dispatch(app, request, exchange.route)).catch_unwind().await;
    let response = match answered {
        Ok(response) => response.unwrap_or_else(IntoResponse::into_response),
        Err(panic) => Refusal::because(ProblemType::Internal, said(&*panic)).into_response(),
    };
    let mut response = exchange.finish(response);
    arrival.mark(&mut response);
    if chunked {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn dispatch(app: App, request: Request, route: Option<&'static Route>) -> Result<Response, Refusal> {
    let (method, headers) = (request.method(), request.headers());
    guard::host(&app, request.version(), request.uri(), headers)?;
    guard::framing(headers)?;
    let route = route.ok_or_else(Refusal::not_found)?;
    let query = request.uri().query().unwrap_or_default();
    if method == Method::OPTIONS {
        return Ok(guard::preflight(&app, route, query, headers));
    }
    let operation = route.operation(method, query);
    let operation = operation.ok_or_else(|| Refusal::method(method, &guard::allow(&app, route, query)))?;
    guard::change(&app, operation.effect, headers)?;
    Ok(array::run_request(operation.run(request, app)).await)
}

/// A request that is being answered.
struct Exchange {
    id: RequestId,
    method: Method,
    path: Option<String>,
    route: Option<&'static Route>,
    began: Instant,
    running: Running,
}

impl Exchange {
    fn begin(app: &App, request: &Request) -> Self {
        let method = request.method().clone();
        let route = Route::find(&method, request.uri().path());
        // The path is only needed where requests are logged one by one.
        let path = tracing::enabled!(tracing::Level::DEBUG).then(|| request.uri().path().to_owned());
        let running = app.metrics().begin();
        Self { id: app.request_ids().of(request.headers()), method, path, route, began: Instant::now(), running }
    }

    fn finish(self, mut response: Response) -> Response {
        if let Some(refusal) = Refusal::taken_from(&mut response) {
            refusal.log(&self.id);
            response = refusal.render(&self.id);
        }
        let headers = response.headers_mut();
        headers.insert(REQUEST_ID, self.id.header());
        guard::mark(headers);
        if self.method == Method::HEAD {
            response = without_body(response);
        }
        self.measure(&response);
        self.watched(response)
    }

    fn measure(&self, response: &Response) {
        let template = self.route.map_or("none", |route| route.template);
        let (status, took) = (response.status(), self.began.elapsed());
        self.running.answered(template, &self.method, status, took);
        if let Some(path) = &self.path {
            let status = status.as_u16();
            tracing::debug!(request = %self.id, method = %self.method, path, status, ?took, "answered a request");
        }
    }

    /// Counts the body's bytes, and has it end the exchange where it is sent piece by piece.
    fn watched(self, response: Response) -> Response {
        match response.body().size_hint().exact() {
            Some(size) if size <= SMALL => {
                self.running.sent(size);
                response
            }
            _ => response.map(|body| Body::new(Tracked::new(body, self.id, self.running))),
        }
    }
}

/// The answer to `HEAD`: that of `GET`, with the length of the body in place of the body.
fn without_body(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let described = parts.headers.contains_key(CONTENT_TYPE) && !parts.headers.contains_key(CONTENT_LENGTH);
    let size = body.size_hint().exact();
    if let Some(size) = size.filter(|_| described) {
        parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(size));
    }
    // An empty body of a known length would be told as a length of 0.
    let none = stream::empty::<Result<Bytes, std::convert::Infallible>>();
    let body = if size.is_some() { Body::empty() } else { Body::from_stream(none) };
    Response::from_parts(parts, body)
}

/// What a panic said.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a handler panicked: {}", text.unwrap_or("without a text"))
}
