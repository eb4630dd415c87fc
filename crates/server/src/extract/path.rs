//! Extractors for the key, prefix or node named by the path.

use axum::extract::FromRequestParts;
use http::request::Parts;
use zarrd_meta::{NodePath, zom};
use zarrd_store::{Key, KeyError, Prefix};
use zarrd_wire::routes::{
    PathError, STORE_ROOT, Slashes, StoreTarget, parse_array, parse_node, parse_schema, parse_store,
};

use crate::{admission, app::App, error::ApiError};

/// The key named by the path.
pub(crate) struct KeyPath(pub(crate) Key);

/// The prefix named by the path.
pub(crate) struct PrefixPath(pub(crate) Prefix);

/// The key or prefix named by the path.
pub(crate) struct StorePath(pub(crate) StoreTarget);

/// The path of an array.
pub(crate) struct ArrayPath(pub(crate) NodePath);

/// The path of a node.
pub(crate) struct NodePathParam(pub(crate) NodePath);

/// The ZOM version whose schema is requested.
pub(crate) struct SchemaPath(pub(crate) zom::ZomFormat);

impl FromRequestParts<App> for KeyPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        match parse_target(parts)? {
            StoreTarget::Key(key) => Ok(Self(key)),
            // Only a `PUT` with a trailing slash is routed here with a prefix.
            StoreTarget::Prefix(prefix) => Err(not_a_key(&prefix).into()),
        }
    }
}

impl FromRequestParts<App> for PrefixPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        match parse_target(parts)? {
            StoreTarget::Prefix(prefix) => Ok(Self(prefix)),
            StoreTarget::Key(_) => Err(PathError::Key(KeyError::NoTrailingSlash).into()),
        }
    }
}

impl FromRequestParts<App> for StorePath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        Ok(Self(parse_target(parts)?))
    }
}

impl FromRequestParts<App> for NodePathParam {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        parse_node(parts.uri.path(), slashes(parts)).map(Self).map_err(ApiError::invalid_path)
    }
}

impl FromRequestParts<App> for SchemaPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let path = parts.uri.path();
        parse_schema(path).map(Self).ok_or_else(|| ApiError::not_found(app.settings().base_path.as_str(), path))
    }
}

impl FromRequestParts<App> for ArrayPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        parse_array(parts.uri.path(), slashes(parts)).map(Self).map_err(ApiError::invalid_path)
    }
}

/// The target that the path names: the one that the request was authorized for, or the one that would have been.
fn parse_target(parts: &mut Parts) -> Result<StoreTarget, PathError> {
    if let Some(target) = admission::take_target(&mut parts.extensions) {
        return Ok(target);
    }
    parse_store(parts.uri.path().strip_prefix(STORE_ROOT).unwrap_or_default(), slashes(parts))
}

fn slashes(parts: &Parts) -> Slashes {
    if parts.method.is_safe() { Slashes::Collapse } else { Slashes::Refuse }
}

fn not_a_key(prefix: &Prefix) -> PathError {
    PathError::Key(match prefix.is_root() {
        true => KeyError::Empty,
        false => KeyError::EmptySegment { offset: prefix.as_bytes().len() },
    })
}
