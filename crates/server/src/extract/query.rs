//! Queries.

use axum::extract::FromRequestParts;
use http::request::Parts;
use wire::query::{Confirm, ElementsQuery, ListQuery, parse_key_write};

use crate::{refusal::Refusal, state::App};

/// The query of a listing.
pub(crate) struct ListingQuery(pub(crate) ListQuery);

/// The query of the erasing of a prefix.
pub(crate) struct ConfirmQuery(pub(crate) Confirm);

/// The query of the setting or erasing of a key, which has no parameters.
pub(crate) struct KeyWriteQuery;

/// The query of the reading of elements.
pub(crate) struct GetElements(pub(crate) ElementsQuery);

/// The query of the reading of elements where the body says which.
pub(crate) struct PostElements(pub(crate) ElementsQuery);

impl FromRequestParts<App> for ListingQuery {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Refusal> {
        Ok(Self(ListQuery::parse(text(parts))?))
    }
}

impl FromRequestParts<App> for ConfirmQuery {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Refusal> {
        Ok(Self(Confirm::parse(text(parts))?))
    }
}

impl FromRequestParts<App> for KeyWriteQuery {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Refusal> {
        parse_key_write(text(parts))?;
        Ok(Self)
    }
}

impl FromRequestParts<App> for GetElements {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Refusal> {
        Ok(Self(ElementsQuery::parse(text(parts))?))
    }
}

impl FromRequestParts<App> for PostElements {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Refusal> {
        Ok(Self(ElementsQuery::parse_post(text(parts))?))
    }
}

fn text(parts: &Parts) -> &str {
    parts.uri.query().unwrap_or_default()
}
