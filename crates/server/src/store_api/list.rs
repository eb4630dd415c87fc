//! Handlers that list keys and prefixes.

use std::future::ready;

use array::Claim;
use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use futures::{StreamExt, TryStreamExt, stream};
use http::{
    HeaderValue, Uri,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY},
};
use store::{PageRequest, Prefix};
use wire::{
    headers::{JSON, NDJSON},
    query::{DEFAULT_LIMIT, ListKind, ListQuery},
};

use super::{
    html_listing,
    json_listing::{self, Batch},
    pages, redirect,
};
use crate::{
    app::App,
    error::ApiError,
    extract::{ListingFormat, ListingPreferences, PrefixPath, Query},
    headers::REVALIDATE,
    memory_claim::RequestClaim,
};

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
/// A listing loads nothing, submits nothing, and cannot be framed.
const CONTENT_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
/// The largest retained size, in bytes, that needs no memory permit.
const UNRESERVED_LIMIT: usize = 128 << 10;
const VARY_ACCEPT_USER_AGENT: HeaderValue = HeaderValue::from_static("accept, user-agent");

/// `GET /store`: redirects to the root prefix.
pub(crate) async fn root(uri: Uri) -> Result<Response, ApiError> {
    redirect::with_slash(&uri)
}

/// `GET` of a prefix: lists the keys or children below it.
pub(crate) async fn list(
    State(app): State<App>,
    PrefixPath(prefix): PrefixPath,
    Query(query): Query<ListQuery>,
    preferences: ListingPreferences,
    RequestClaim(claim): RequestClaim,
) -> Result<Response, ApiError> {
    let mut response = match (query.kind, preferences.best(offered_formats(query.kind))) {
        (ListKind::Keys, ListingFormat::Ndjson) => ndjson_lines(&app, &prefix, query).await?,
        (ListKind::Dir, ListingFormat::Html) => html_page(&app, &prefix, query).await?,
        _ => json_page(&app, &claim, &prefix, query).await?,
    };
    response.headers_mut().insert(VARY, VARY_ACCEPT_USER_AGENT);
    response.headers_mut().insert(CACHE_CONTROL, REVALIDATE);
    Ok(response)
}

fn offered_formats(kind: ListKind) -> &'static [ListingFormat] {
    match kind {
        ListKind::Dir => &[ListingFormat::Json, ListingFormat::Html],
        ListKind::Keys => &[ListingFormat::Json, ListingFormat::Ndjson],
    }
}

/// Returns one page, which ends with a cursor.
async fn json_page(app: &App, claim: &Claim, prefix: &Prefix, query: ListQuery) -> Result<Response, ApiError> {
    let (kind, limit) = (query.kind, query.limit.unwrap_or(DEFAULT_LIMIT));
    let query = ListQuery { limit: Some(limit), ..query };
    let memory = match json_listing::retained_bytes(kind, limit) {
        ..=UNRESERVED_LIMIT => None,
        retained => Some(claim.take(retained as u64).await?),
    };
    let body = match kind {
        ListKind::Keys => {
            let batches = pages::keys(app.clone(), prefix.clone(), query).await?.map_ok(Batch::from);
            json_listing::listing_body(kind, prefix, batches.boxed(), memory).await?
        }
        ListKind::Dir => {
            let batches = pages::dir(app.clone(), prefix.clone(), query).await?.map_ok(Batch::from);
            json_listing::listing_body(kind, prefix, batches.boxed(), memory).await?
        }
    };
    Ok(([(CONTENT_TYPE, JSON)], body).into_response())
}

/// Returns all entries up to the limit, one per line.
async fn ndjson_lines(app: &App, prefix: &Prefix, query: ListQuery) -> Result<Response, ApiError> {
    let pages = pages::keys(app.clone(), prefix.clone(), query).await?;
    let body = Body::from_stream(pages.map(|page| page.map(|page| pages::lines(&page))));
    Ok(([(CONTENT_TYPE, NDJSON)], body).into_response())
}

/// Returns all children on one HTML page, since link followers do not use cursors.
///
/// A prefix without keys is 404 here, because link followers take any page for an existing directory.
async fn html_page(app: &App, prefix: &Prefix, query: ListQuery) -> Result<Response, ApiError> {
    if !prefix.is_root() && app.store().list_prefix(prefix, PageRequest::first(1)).await?.keys.is_empty() {
        return Err(ApiError::no_such_prefix(prefix));
    }
    let pages = pages::dir(app.clone(), prefix.clone(), query).await?;
    let rows = {
        let prefix = prefix.clone();
        pages.map(move |page| page.map(|page| html_listing::rows(&prefix, &page)))
    };
    let head = stream::once(ready(Ok(html_listing::head(prefix))));
    let foot = stream::once(ready(Ok(html_listing::foot())));
    let body = Body::from_stream(head.chain(rows).chain(foot));
    Ok(([(CONTENT_TYPE, HTML), (CONTENT_SECURITY_POLICY, CONTENT_POLICY)], body).into_response())
}
