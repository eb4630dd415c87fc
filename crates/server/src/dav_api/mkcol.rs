//! `MKCOL`: a collection is there as soon as a key is below it, so that nothing is made.

use axum::{
    body::Body,
    extract::{Request, State},
};
use http::{Method, StatusCode, Uri};
use zarrd_access::Right;
use zarrd_store::{Key, Prefix};
use zarrd_wire::{dav, routes::StoreTarget};

use super::resource::version_of;
use crate::{
    app::App,
    authorization::Session,
    error::ApiError,
    extract::{NoQuery, Query, StateConditions, StorePath, WriteConditions},
    guard,
    pager::first_below,
    routes::Route,
};

/// `MKCOL`: succeeds without an effect if there is neither a key of the name nor one below it.
pub(crate) async fn mkcol(
    State(app): State<App>,
    StorePath(target): StorePath,
    _: Query<NoQuery>,
    conditions: WriteConditions,
    session: Session,
    uri: Uri,
    request: Request,
) -> Result<StatusCode, ApiError> {
    if has_body(request.body()) {
        return Err(ApiError::unsupported_media_type(&[]));
    }
    let (key, prefix) = match target {
        StoreTarget::Key(key) => (Some(key.clone()), Prefix::from_key(&key)),
        StoreTarget::Prefix(prefix) => (Key::parse(prefix.as_str().trim_end_matches('/')).ok(), Some(prefix)),
    };
    // Of a key that only the prefix's name stands for, the caller learns nothing that it may not change.
    let key = key.filter(|key| session.principal().may_key(Right::Write, key));
    let mut exists = false;
    match &key {
        Some(key) => {
            let current = version_of(&**app.store(), key).await?;
            conditions.states.as_ref().map_or(Ok(()), |states| states.check(key, current, &[]))?;
            exists = current.is_some();
        }
        None => conditions.states.as_ref().map_or(Ok(()), StateConditions::check_prefix)?,
    }
    if let Some(prefix) = prefix.filter(|_| !exists) {
        exists = first_below(&app, &prefix).await?.is_some();
    }
    if exists {
        let route = Route::find(&Method::GET, uri.path());
        let allowed = route.map(|route| guard::allowed_methods(&app, route, &uri)).unwrap_or_default();
        return Err(ApiError::method_not_allowed(&dav::mkcol(), &allowed));
    }
    Ok(StatusCode::CREATED)
}

/// True if a request has a body, even one whose length is unknown.
fn has_body(body: &Body) -> bool {
    !http_body::Body::is_end_stream(body)
}
