//! What operators ask: is it up, can it write, what has it done, what does it offer.

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, header::CONTENT_TYPE};
use store::StoreError;
use wire::{
    health::{Health, Readiness},
    problem::ProblemType,
};

use crate::{app::App, error::ApiError, settings::Changes};

/// The description of the whole contract, which a test compares with the route table.
const OPENAPI: &str = include_str!("../../../openapi.yaml");
const YAML: HeaderValue = HeaderValue::from_static("application/yaml");
const OPENMETRICS: HeaderValue = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// True if the process runs.
pub(crate) async fn health() -> Json<Health> {
    Json(Health { version: env!("CARGO_PKG_VERSION").to_owned() })
}

/// Says that requests can be served. On a read-only server they can, but for changes. Without space they can, but for sets, and it heals by itself; read-only until a
/// restart is for somebody to look at.
pub(crate) async fn ready(State(app): State<App>) -> Result<Json<Readiness>, ApiError> {
    if app.settings().changes == Changes::Rejected {
        return Ok(Json(Readiness { writable: false, problem: Some(ProblemType::ReadOnlyServer) }));
    }
    match app.store().writable().await {
        Ok(()) => Ok(Json(Readiness { writable: true, problem: None })),
        Err(StoreError::OutOfSpace) => Ok(Json(Readiness { writable: false, problem: Some(ProblemType::OutOfSpace) })),
        Err(error) => Err(error.into()),
    }
}

/// The metrics.
pub(crate) async fn metrics(State(app): State<App>) -> Result<Response, ApiError> {
    let text =
        app.metrics().render(app.arrays()).map_err(|error| ApiError::with_cause(ProblemType::Internal, error))?;
    Ok(([(CONTENT_TYPE, OPENMETRICS)], text).into_response())
}

/// The description of the contract.
pub(crate) async fn openapi() -> Response {
    ([(CONTENT_TYPE, YAML)], OPENAPI).into_response()
}
