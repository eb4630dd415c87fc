//! The key, prefix or node that a path names.

use axum::extract::FromRequestParts;
use http::request::Parts;
use meta::{NodePath, zom};
use store::{Key, KeyError, Prefix};
use wire::routes::{PathError, STORE_ROOT, Slashes, StoreTarget, parse_array, parse_node, parse_schema, parse_store};

use crate::{app::App, error::Refusal};

/// The key that the path names.
pub(crate) struct AtKey(pub(crate) Key);

/// The prefix that the path names.
pub(crate) struct AtPrefix(pub(crate) Prefix);

/// The node whose elements the path names.
pub(crate) struct AtArray(pub(crate) NodePath);

/// The node that the path names.
pub(crate) struct AtNode(pub(crate) NodePath);

/// The model whose schema the path names.
pub(crate) struct AtSchema(pub(crate) zom::Version);

impl FromRequestParts<App> for AtKey {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Refusal> {
        match target(parts)? {
            StoreTarget::Key(key) => Ok(Self(key)),
            // Only a `PUT` comes here with a prefix: a key does not end in `/`.
            StoreTarget::Prefix(prefix) => Err(no_key(&prefix).into()),
        }
    }
}

impl FromRequestParts<App> for AtPrefix {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Refusal> {
        match target(parts)? {
            StoreTarget::Prefix(prefix) => Ok(Self(prefix)),
            StoreTarget::Key(_) => Err(PathError::Key(KeyError::NoTrailingSlash).into()),
        }
    }
}

impl FromRequestParts<App> for AtNode {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Refusal> {
        parse_node(parts.uri.path(), slashes(parts)).map(Self).map_err(Refusal::path)
    }
}

impl FromRequestParts<App> for AtSchema {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Refusal> {
        parse_schema(parts.uri.path()).map(Self).ok_or_else(Refusal::not_found)
    }
}

impl FromRequestParts<App> for AtArray {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Refusal> {
        parse_array(parts.uri.path(), slashes(parts)).map(Self).map_err(Refusal::path)
    }
}

fn target(parts: &Parts) -> Result<StoreTarget, PathError> {
    parse_store(parts.uri.path().strip_prefix(STORE_ROOT).unwrap_or_default(), slashes(parts))
}

fn slashes(parts: &Parts) -> Slashes {
    if parts.method.is_safe() { Slashes::Collapse } else { Slashes::Refuse }
}

fn no_key(prefix: &Prefix) -> PathError {
    PathError::Key(match prefix.is_root() {
        true => KeyError::Empty,
        false => KeyError::EmptySegment { at: prefix.as_bytes().len() },
    })
}
