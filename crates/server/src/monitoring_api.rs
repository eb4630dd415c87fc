//! Endpoints for monitoring: health, readiness, metrics and the OpenAPI document.

use std::time::Duration;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use futures::future::try_join_all;
use http::{Extensions, HeaderValue, header::CONTENT_TYPE};
use tokio::time::timeout;
use zarrd_access::Right;
use zarrd_store::{BackendErrorKind, Guarantees, Key, Prefix, StoreError, Writes};
use zarrd_wire::{
    health::{Health, Readiness, StoreGuarantees},
    problem::ProblemType,
};

use crate::{admission, app::App, authorization::Session, error::ApiError, settings::Changes};

/// The OpenAPI document; a test compares it with the route table.
const OPENAPI: &str = include_str!("../../../openapi.yaml");
const YAML: HeaderValue = HeaderValue::from_static("application/yaml");
const OPENMETRICS: HeaderValue = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// The time in which a store of other programs has to answer to count as reachable.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// The name of the value whose metadata is read; it need not exist.
const DOCUMENT: &str = "zarr.json";

/// `GET /healthz`: the process is running.
pub(crate) async fn health() -> Json<Health> {
    Json(Health { version: env!("CARGO_PKG_VERSION").to_owned() })
}

/// `GET /readyz`: the server can serve requests.
///
/// A read-only server is ready, and so is one whose store cannot be changed. A server without space is ready but not
/// writable, and recovers by itself. A store that is read-only until a restart is an error, and so is an access
/// directory that cannot be read.
pub(crate) async fn ready(State(app): State<App>, extensions: Extensions) -> Result<Json<Readiness>, ApiError> {
    app.settings().access.directory.status()?;
    let problem = obstacle(&app).await?;
    let session = admission::session_of(&extensions, &app);
    let parts = app.store().parts().into_iter().filter(|(name, _)| is_visible(&session, name.as_deref()));
    let guarantees = try_join_all(parts.map(|(name, guarantees)| describe(&app, name, guarantees))).await?;
    // Names of keys and files are for administrators.
    let is_administrator = session.principal().may(Right::Admin, &Prefix::root());
    let scrub = app.store().scrub().filter(|_| is_administrator).map(Into::into);
    Ok(Json(Readiness { writable: problem.is_none(), problem, guarantees, scrub }))
}

/// The guarantees of a store, and whether it answers if other programs keep it. Fails if that at the root does not.
async fn describe(app: &App, name: Option<String>, guarantees: Guarantees) -> Result<StoreGuarantees, StoreError> {
    let described = StoreGuarantees::new(name.as_deref(), guarantees);
    if guarantees.writes == Writes::Commit {
        return Ok(described);
    }
    let key = name.as_ref().map_or_else(|| DOCUMENT.to_owned(), |name| format!("{name}/{DOCUMENT}"));
    let answer = match Key::parse(&key) {
        Ok(key) => match timeout(ANSWERS_WITHIN, app.store().head(&key)).await {
            Ok(answer) => answer,
            Err(elapsed) => Err(StoreError::backend(BackendErrorKind::Timeout, elapsed)),
        },
        Err(_) => Ok(None),
    };
    match answer {
        Err(error) if name.is_none() => Err(error.at(DOCUMENT)),
        answer => Ok(StoreGuarantees { reachable: Some(answer.is_ok()), ..described }),
    }
}

/// True if the caller may know of a mount: one that may read it, or anything below it.
fn is_visible(session: &Session, mount: Option<&str>) -> bool {
    let Some(name) = mount else { return true };
    let principal = session.principal();
    Prefix::parse(&format!("{name}/")).is_ok_and(|prefix| {
        principal.may(Right::Read, &prefix) || !principal.grants.children_towards(Right::Read, &prefix).is_empty()
    })
}

/// The problem that every change would have, if there is one that does not keep the server from reading.
async fn obstacle(app: &App) -> Result<Option<ProblemType>, StoreError> {
    if app.settings().changes == Changes::Rejected {
        return Ok(Some(ProblemType::ReadOnlyServer));
    }
    let Ok(store) = app.writes() else { return Ok(Some(ProblemType::Unsupported)) };
    match store.check_writable().await {
        Ok(()) => Ok(None),
        Err(StoreError::OutOfSpace) => Ok(Some(ProblemType::OutOfSpace)),
        Err(error) => Err(error),
    }
}

/// `GET /metrics`.
pub(crate) async fn metrics(State(app): State<App>) -> Result<Response, ApiError> {
    let totals = app.store_totals().current().await;
    app.metrics().set_store(totals, app.store().disk_space(), app.store().scrub());
    let text =
        app.metrics().render(app.arrays()).map_err(|error| ApiError::with_cause(ProblemType::Internal, error))?;
    Ok(([(CONTENT_TYPE, OPENMETRICS)], text).into_response())
}

/// `GET /openapi.yaml`.
pub(crate) async fn openapi() -> Response {
    ([(CONTENT_TYPE, YAML)], OPENAPI).into_response()
}
