//! Listing keys and prefixes.

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
use store::{Page, Prefix};
use wire::{
    headers::{JSON, NDJSON},
    query::{DEFAULT_LIMIT, ListKind, ListQuery},
};

use super::{
    html_listing,
    json_listing::{self, Step},
    pages, redirect,
};
use crate::{
    app::App,
    error::Refusal,
    extract::{AtPrefix, Media, Query, Wanted},
    headers::REVALIDATE,
    memory_claim::Claimed,
};

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
/// A listing loads nothing, submits nothing and is framed by nobody.
const NOTHING: HeaderValue =
    HeaderValue::from_static("default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
/// What keeps no more than this is written without asking whether there is memory.
const SMALL: usize = 128 << 10;
const VARIES: HeaderValue = HeaderValue::from_static("accept, user-agent");

/// `GET /store`: the root has a slash.
pub(crate) async fn root(uri: Uri) -> Result<Response, Refusal> {
    redirect::with_slash(&uri)
}

/// `GET` of a prefix: what lies below it.
pub(crate) async fn list(
    State(app): State<App>,
    AtPrefix(prefix): AtPrefix,
    Query(query): Query<ListQuery>,
    wanted: Wanted,
    Claimed(claim): Claimed,
) -> Result<Response, Refusal> {
    let mut response = match (query.kind, wanted.best(offered(query.kind))) {
        (ListKind::Keys, Media::Ndjson) => lines(&app, &prefix, query).await?,
        (ListKind::Dir, Media::Html) => links(&app, &prefix, query).await?,
        _ => page(&app, &claim, &prefix, query).await?,
    };
    response.headers_mut().insert(VARY, VARIES);
    response.headers_mut().insert(CACHE_CONTROL, REVALIDATE);
    Ok(response)
}

fn offered(kind: ListKind) -> &'static [Media] {
    match kind {
        ListKind::Dir => &[Media::Json, Media::Html],
        ListKind::Keys => &[Media::Json, Media::Ndjson],
    }
}

/// A page, for the reader to go on from its cursor.
async fn page(app: &App, claim: &Claim, prefix: &Prefix, query: ListQuery) -> Result<Response, Refusal> {
    let (kind, limit) = (query.kind, query.limit.unwrap_or(DEFAULT_LIMIT));
    let query = ListQuery { limit: Some(limit), ..query };
    let memory = match json_listing::kept(kind, limit) {
        ..=SMALL => None,
        kept => Some(claim.take(kept as u64).await?),
    };
    let body = match kind {
        ListKind::Keys => {
            let steps = pages::keys(app.clone(), prefix.clone(), query).await?.map_ok(Step::from);
            json_listing::body(kind, prefix, steps.boxed(), memory).await?
        }
        ListKind::Dir => {
            let steps = pages::dir(app.clone(), prefix.clone(), query).await?.map_ok(Step::from);
            json_listing::body(kind, prefix, steps.boxed(), memory).await?
        }
    };
    Ok(([(CONTENT_TYPE, JSON)], body).into_response())
}

/// All entries, or as many as the limit says, one per line.
async fn lines(app: &App, prefix: &Prefix, query: ListQuery) -> Result<Response, Refusal> {
    let pages = pages::keys(app.clone(), prefix.clone(), query).await?;
    let body = Body::from_stream(pages.map(|page| page.map(|page| pages::lines(&page))));
    Ok(([(CONTENT_TYPE, NDJSON)], body).into_response())
}

/// All children, page by page from the store but in one page for the reader, who knows no cursors.
///
/// A prefix without keys is told as missing here: programs that follow links take any page for a thing that is there.
async fn links(app: &App, prefix: &Prefix, query: ListQuery) -> Result<Response, Refusal> {
    if !prefix.is_root() && app.store().list_prefix(prefix, Page::first(1)).await?.keys.is_empty() {
        return Err(Refusal::no_such_prefix(prefix));
    }
    let pages = pages::dir(app.clone(), prefix.clone(), query).await?;
    let rows = {
        let prefix = prefix.clone();
        pages.map(move |page| page.map(|page| html_listing::rows(&prefix, &page)))
    };
    let head = stream::once(ready(Ok(html_listing::head(prefix))));
    let foot = stream::once(ready(Ok(html_listing::foot())));
    let body = Body::from_stream(head.chain(rows).chain(foot));
    Ok(([(CONTENT_TYPE, HTML), (CONTENT_SECURITY_POLICY, NOTHING)], body).into_response())
}
