//! Handlers that erase values.

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode};
use zarrd_store::{Key, Prefix, StoreError};
use zarrd_wire::{
    dav::{self, DavHeaderError, Depth},
    headers::EXISTED,
    listing::Erased,
    query::Confirmation,
    routes::{NODE_ROOT, encode},
};

use super::put::precondition;
use crate::{
    app::App,
    error::ApiError,
    extract::{KeyPath, NoQuery, PrefixPath, Query, WriteConditions},
};

/// The documents by which a key without a value is the path of a node.
const NODE_DOCUMENTS: [&str; 3] = ["zarr.json", ".zarray", ".zgroup"];

/// `DELETE` of a key: erases its value, if any. Fails if there is none, but a node of that name: nothing was erased of it.
pub(crate) async fn key(
    State(app): State<App>,
    KeyPath(key): KeyPath,
    _: Query<NoQuery>,
    conditions: WriteConditions,
) -> Result<Response, ApiError> {
    let precondition = precondition(&app, &key, conditions).await?;
    let existed = app.writes()?.erase(&key, precondition).await?;
    if !existed && let Some((prefix, document)) = node_document(&app, &key).await? {
        let path = NODE_ROOT.to_owned() + &encode(key.as_str()).to_string();
        let detail = format!("there is no key {key:?}, but a node of that name: DELETE {path} erases it");
        return Err(ApiError::prefix_not_empty(&prefix, &document, detail));
    }
    let existed = HeaderValue::from_static(if existed { "true" } else { "false" });
    Ok((StatusCode::NO_CONTENT, [(EXISTED, existed)]).into_response())
}

/// The prefix of the node named `key`, and one of its documents.
async fn node_document(app: &App, key: &Key) -> Result<Option<(Prefix, Key)>, StoreError> {
    let Some(prefix) = Prefix::from_key(key) else { return Ok(None) };
    for name in NODE_DOCUMENTS {
        let Ok(document) = prefix.join(name) else { return Ok(None) };
        if app.store().head(&document).await?.is_some() {
            return Ok(Some((prefix, document)));
        }
    }
    Ok(None)
}

/// `DELETE` of a prefix: erases all keys below it.
pub(crate) async fn prefix(
    State(app): State<App>,
    PrefixPath(prefix): PrefixPath,
    Query(confirm): Query<Confirmation>,
    conditions: WriteConditions,
    headers: HeaderMap,
) -> Result<Json<Erased>, ApiError> {
    // Of a collection everything below it is erased too (RFC 4918, section 9.6.1).
    if matches!(dav::depth(&headers)?, Some(Depth::Zero | Depth::One)) {
        return Err(DavHeaderError::Depth.into());
    }
    conditions.check_prefix()?;
    if prefix.is_root() && confirm == Confirmation::Missing {
        return Err(ApiError::confirmation_required("this erases every key in the store"));
    }
    Ok(Json(app.writes()?.erase_prefix(&prefix).await?.into()))
}
