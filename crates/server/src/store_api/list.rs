//! Handlers that list keys and prefixes.

use std::{future::ready, sync::Arc};

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use http::{
    HeaderValue, Uri,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY},
};
use zarrd_access::Right;
use zarrd_array::Claim;
use zarrd_store::{DirPage, KeyPage, ListableStore, PageRequest, Prefix, StoreError};
use zarrd_wire::{
    headers::{JSON, NDJSON},
    query::{Contents, DEFAULT_LIMIT, ListKind, ListQuery},
};

use super::{
    html_listing,
    json_listing::{self, Batch},
    pages, redirect, value_listing,
};
use crate::{
    admission::RequestClaim,
    app::App,
    authorization::Session,
    error::ApiError,
    extract::{Links, ListingFormat, ListingPreferences, PrefixPath, Query},
    headers::REVALIDATE,
    snapshot_api::ReadSource,
    surface::Surface,
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
    session: Session,
    surface: Surface,
    RequestClaim(claim): RequestClaim,
) -> Result<Response, ApiError> {
    let query = ListQuery { cursor: query.cursor.map(|cursor| session.unbind(&cursor)).transpose()?, ..query };
    let format = preferences.best(offered_formats(&query));
    let links = preferences.links();
    let source = ReadSource::new(&app, query.snapshot.as_deref()).await?;
    let mut response = if query.contents == Contents::Small {
        value_listing::json_page(&app, &**source.values_below(&prefix)?, &prefix, query, &session, &claim).await?
    } else {
        let source = source.listings(&prefix)?;
        let listing = Listing { app, source, session, surface, prefix, query };
        match (listing.query.kind, format) {
            (ListKind::Keys, ListingFormat::Ndjson) => listing.ndjson_lines().await?,
            (ListKind::Dir, ListingFormat::Html) => listing.html_page(links).await?,
            _ => listing.json_page(&claim).await?,
        }
    };
    response.headers_mut().insert(VARY, VARY_ACCEPT_USER_AGENT);
    response.headers_mut().insert(CACHE_CONTROL, REVALIDATE);
    Ok(response)
}

fn offered_formats(query: &ListQuery) -> &'static [ListingFormat] {
    match query.kind {
        ListKind::Keys if query.contents == Contents::Small => &[ListingFormat::Json],
        ListKind::Dir => &[ListingFormat::Json, ListingFormat::Html],
        ListKind::Keys => &[ListingFormat::Json, ListingFormat::Ndjson],
    }
}

/// A listing of one request.
struct Listing {
    app: App,
    /// The store, or a snapshot of it.
    source: Arc<dyn ListableStore>,
    session: Session,
    surface: Surface,
    prefix: Prefix,
    query: ListQuery,
}

impl Listing {
    /// Returns one page, which ends with a cursor.
    async fn json_page(self, claim: &Claim) -> Result<Response, ApiError> {
        let (kind, limit) = (self.query.kind, self.query.limit.unwrap_or(DEFAULT_LIMIT));
        let memory = match json_listing::retained_bytes(kind, limit) {
            ..=UNRESERVED_LIMIT => None,
            retained => Some(claim.take(retained as u64).await?),
        };
        let (prefix, session) = (self.prefix.clone(), self.session.clone());
        let listing = Self { query: ListQuery { limit: Some(limit), ..self.query }, ..self };
        let bind = move |mut batch: Batch| {
            batch.cursor = batch.cursor.map(|cursor| session.bind(cursor));
            batch
        };
        let body = match kind {
            ListKind::Keys => {
                let batches = listing.keys().await?.map_ok(Batch::from).map_ok(bind);
                json_listing::listing_body(kind, &prefix, batches.boxed(), memory).await?
            }
            ListKind::Dir => {
                let batches = listing.children().await?.map_ok(Batch::from).map_ok(bind);
                json_listing::listing_body(kind, &prefix, batches.boxed(), memory).await?
            }
        };
        Ok(([(CONTENT_TYPE, JSON)], body).into_response())
    }

    /// Returns all entries up to the limit, one per line.
    async fn ndjson_lines(self) -> Result<Response, ApiError> {
        let pages = self.keys().await?;
        let body = Body::from_stream(pages.map(|page| page.map(|page| pages::lines(&page))));
        Ok(([(CONTENT_TYPE, NDJSON)], body).into_response())
    }

    /// Returns all children on one HTML page, since link followers do not use cursors.
    ///
    /// A prefix without keys is 404 here, because link followers take any page for an existing directory.
    async fn html_page(self, links: Links) -> Result<Response, ApiError> {
        let prefix = self.prefix.clone();
        if !prefix.is_root() && self.granted_children().is_none() {
            let first = self.source.list_prefix(&prefix, PageRequest::first(1)).await?;
            if first.keys.is_empty() {
                return Err(ApiError::no_such_prefix(&prefix));
            }
        }
        let base = self.surface.base(&self.app, &self.session);
        let head = stream::once(ready(Ok(html_listing::head(&base, &prefix))));
        let pages = self.children().await?;
        let rows = pages.map(move |page| page.map(|page| html_listing::rows(links, &prefix, &page)));
        let foot = stream::once(ready(Ok(html_listing::foot())));
        let body = Body::from_stream(head.chain(rows).chain(foot));
        Ok(([(CONTENT_TYPE, HTML), (CONTENT_SECURITY_POLICY, CONTENT_POLICY)], body).into_response())
    }

    async fn keys(self) -> Result<BoxStream<'static, Result<KeyPage, StoreError>>, StoreError> {
        Ok(pages::keys(self.app, self.source, self.prefix, self.query).await?.boxed())
    }

    async fn children(self) -> Result<BoxStream<'static, Result<DirPage, StoreError>>, StoreError> {
        match self.granted_children() {
            Some(prefixes) => {
                let page = DirPage { keys: Vec::new(), prefixes, cursor: None };
                Ok(stream::iter([Ok(page)]).boxed())
            }
            None => Ok(pages::dir(self.app, self.source, self.prefix, self.query).await?.boxed()),
        }
    }

    /// The children that lead to what the caller may read; `None` if the caller may read all of the prefix. They are
    /// listed whether or not they exist, and are few enough for one page.
    fn granted_children(&self) -> Option<Vec<Prefix>> {
        let principal = self.session.principal();
        (!principal.may(Right::Read, &self.prefix))
            .then(|| principal.grants.children_towards(Right::Read, &self.prefix))
    }
}
