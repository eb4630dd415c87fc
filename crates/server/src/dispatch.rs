//! Guards, and dispatch to the handlers of the route table.

use axum::{Router, extract::Request, response::Response};
use http::{Method, Uri};
use tracing::{Instrument, trace_span};
use zarrd_array::RemovedCopies;
use zarrd_executor::STEPS;
use zarrd_wire::headers::{CONSOLIDATED, REQUEST_ID};

use crate::{
    admission,
    app::App,
    authorization,
    error::ApiError,
    guard,
    headers::removed_copies,
    request_log::{OperationName, RouteName},
    request_scope::{self, Handled},
    routes::{Route, Safety},
    s3_api,
    surface::Surface,
};

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
        Surface::S3 => Router::new().fallback(move |request| s3_api::handle(app, request)),
        Surface::Root => Router::new().fallback(move |mut request| {
            surface.enter(&mut request);
            handle(app, request)
        }),
    }
}

/// Handles any request whose path has no base path.
pub(crate) async fn handle(app: App, mut request: Request) -> Response {
    authorization::strip_share_link(&mut request);
    let route = Route::find(request.method(), request.uri().path());
    let name = route_name(&request, route);
    let step = trace_span!(target: STEPS, "dispatch");
    request_scope::run(app.clone(), request, name, |request| dispatch(app, request, route)).instrument(step).await
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
    let route = Route::find(request.method(), request.uri().path());
    let logged = request_scope::log(app, request, &id, route_name(request, route));
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
    let step = trace_span!(target: STEPS, "authorize");
    let session = authorization::authenticate(&app, headers, query, link).instrument(step.clone()).await?;
    request_scope::record_principal(&request, &session);
    let target = step.in_scope(|| authorization::authorize(&app, route, operation, &request, &session))?;
    drop(step);
    guard::check_mutation(&app, operation, &session, headers)?;
    operation.check_supported(&app, request.uri())?;
    // Such a request uses nothing that is cached from before; nothing changes for others.
    let not_before = guard::asks_for_current(headers).then(tokio::time::Instant::now);
    admission::attach(&app, &session, target, &mut request);
    let removed = (operation.safety == Safety::Unsafe).then(RemovedCopies::default);
    if let Some(removed) = &removed {
        request.extensions_mut().insert(removed.clone());
    }
    let handled = operation.run(request, app).instrument(trace_span!(target: STEPS, "handle"));
    let mut response = zarrd_executor::run_request(zarrd_store::not_before(not_before, handled)).await;
    response.headers_mut().extend(removed.and_then(removed_copies).map(|removed| (CONSOLIDATED, removed)));
    Ok(Handled::new(response, session))
}

/// The name of a request's route and operation in the logs and the metrics.
fn route_name(request: &Request, route: Option<&'static Route>) -> RouteName {
    let query = request.uri().query().unwrap_or_default();
    let operation = route.and_then(|route| route.operation(request.method(), query));
    let operation = operation.map(|operation| OperationName {
        selected_by: operation.selected_by,
        is_unsafe: operation.safety == Safety::Unsafe,
    });
    RouteName { template: route.map(|route| route.template), operation }
}
