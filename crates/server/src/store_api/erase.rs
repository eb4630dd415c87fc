//! Handlers that erase values.

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode};
use zarrd_wire::{headers::EXISTED, listing::Erased, query::Confirmation};

use super::put::precondition;
use crate::{
    app::App,
    error::ApiError,
    extract::{KeyPath, NoQuery, PrefixPath, Query, WriteConditions},
};

/// `DELETE` of a key: erases its value, if any.
pub(crate) async fn key(
    State(app): State<App>,
    KeyPath(key): KeyPath,
    _: Query<NoQuery>,
    conditions: WriteConditions,
) -> Result<Response, ApiError> {
    let precondition = precondition(&app, &key, conditions).await?;
    let existed = app.writes()?.erase(&key, precondition).await?;
    let existed = HeaderValue::from_static(if existed { "true" } else { "false" });
    Ok((StatusCode::NO_CONTENT, [(EXISTED, existed)]).into_response())
}

/// `DELETE` of a prefix: erases all keys below it.
pub(crate) async fn prefix(
    State(app): State<App>,
    PrefixPath(prefix): PrefixPath,
    Query(confirm): Query<Confirmation>,
    conditions: WriteConditions,
) -> Result<Json<Erased>, ApiError> {
    if conditions.is_conditional() {
        return Err(ApiError::invalid_header("If-Match", "a prefix has no version to compare"));
    }
    if prefix.is_root() && confirm == Confirmation::Missing {
        return Err(ApiError::confirmation_required("this erases every key in the store"));
    }
    Ok(Json(app.writes()?.erase_prefix(&prefix).await?.into()))
}
