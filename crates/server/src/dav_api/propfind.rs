//! `PROPFIND`: the properties of resources.

use std::{error::Error, io, sync::Arc, time::SystemTime};

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{
    HeaderMap, StatusCode, Uri,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use zarrd_access::Right;
use zarrd_store::{DirPage, Entry, KeyPage, ListableStore, Prefix, Reads, StoreError};
use zarrd_wire::{
    dav::{self, Depth, Multistatus, Propfind, Resource},
    routes::StoreTarget,
};

use super::{
    collections::Collections,
    resource::{self, Found},
};
use crate::{
    app::App,
    authorization::Session,
    error::ApiError,
    extract::{StorePath, takes_whole_paths},
    guard,
    headers::REVALIDATE,
    pager::Pager,
    request_body::XmlDocument,
    routes::Route,
    snapshot_api::ReadSource,
    store_api::content_type,
    surface::Surface,
};

/// The maximum number of responses of infinite depth.
const MAX_RESPONSES: u64 = 100_000;
/// The usual size of the responses of a page, in bytes, by which the number of its entries is chosen.
const PAGE_BYTES: usize = 256 << 10;
/// The usual size of a response, in bytes, without properties that no resource has.
const RESPONSE_BYTES: usize = 1 << 10;
/// The numbers of entries of the smallest and the largest page.
const PAGE_ENTRIES: (usize, usize) = (8, 256);

type BodyError = Box<dyn Error + Send + Sync>;

/// `PROPFIND`: returns the properties of a resource and, for a collection, of what is below it.
pub(crate) async fn propfind(
    State(app): State<App>,
    StorePath(target): StorePath,
    source: ReadSource,
    session: Session,
    surface: Surface,
    (uri, headers): (Uri, HeaderMap),
    XmlDocument(body): XmlDocument,
) -> Result<Response, ApiError> {
    if surface == Surface::Api && takes_whole_paths(&headers) {
        return Err(ApiError::root_required(&dav::propfind(), &methods_without_propfind(&app, &uri)));
    }
    let depth = dav::depth(&headers)?.unwrap_or(Depth::Infinity);
    let request = Propfind::parse(&body)?;
    let requested = SystemTime::now();
    let writer = Multistatus::new(surface.base(&app, &session), request, requested);
    if let StoreTarget::Prefix(prefix) = &target
        && !session.principal().may(Right::Read, prefix)
    {
        return Ok(response(way_below(&session, prefix, depth, &writer, requested)));
    }
    let (prefix, modified) = match resource::find(&app, &source, target, requested).await? {
        Found::Value(key, meta) => {
            let resource = Resource::Value { key: key.as_str(), meta, content_type: &content_type::for_key(&key) };
            return Ok(response(document(&writer, &[resource])));
        }
        Found::Collection(prefix, modified) => (prefix, modified),
    };
    let collection = Resource::Collection { prefix: prefix.as_str(), modified };
    let (store, is_snapshot) = (source.listings(&prefix)?, source.is_snapshot());
    match depth {
        Depth::Zero => Ok(response(document(&writer, &[collection]))),
        Depth::One => {
            let has_times = is_snapshot || app.store().guarantees_below(&prefix).reads == Reads::Commit;
            let times = if has_times { Times::Sampled } else { Times::Requested(requested) };
            children(Walk::new(app, store, prefix, writer), modified, times).await
        }
        Depth::Infinity => descendants(Walk::new(app, store, prefix, writer), modified).await,
    }
}

/// The value of `Allow` for a client that cannot use `PROPFIND`.
fn methods_without_propfind(app: &App, uri: &Uri) -> String {
    let route = Route::find(&dav::propfind(), uri.path());
    let allowed = route.map(|route| guard::allowed_methods(app, route, uri)).unwrap_or_default();
    let others: Vec<&str> = allowed.split(", ").filter(|method| *method != "PROPFIND").collect();
    others.join(", ")
}

/// The times of the collections directly below another one.
#[derive(Clone, Copy, Debug)]
enum Times {
    /// The newest of their first keys.
    Sampled,
    /// The time of the request: in a store without commits each collection would take a request of its own.
    Requested(SystemTime),
}

/// A listing of a collection, which is written as it is read.
struct Walk {
    pager: Pager,
    writer: Multistatus,
}

impl Walk {
    fn new(app: App, source: Arc<dyn ListableStore>, prefix: Prefix, writer: Multistatus) -> Self {
        let entries = PAGE_BYTES.checked_div(RESPONSE_BYTES.saturating_add(writer.overhead())).unwrap_or_default();
        let page_len = entries.clamp(PAGE_ENTRIES.0, PAGE_ENTRIES.1);
        Self { pager: Pager { app, source, prefix, page_len, remaining: None, next: Some(None) }, writer }
    }

    /// The responses of a page of children.
    async fn page_of_children(&self, page: &DirPage, times: Times) -> Result<Bytes, StoreError> {
        let mut out = String::new();
        for prefix in &page.prefixes {
            let modified = match times {
                Times::Requested(time) => Some(time),
                Times::Sampled => resource::newest_below(&self.pager.app, &*self.pager.source, prefix).await?,
            };
            // It may have been erased meanwhile.
            if let Some(modified) = modified {
                self.writer.write(&mut out, &Resource::Collection { prefix: prefix.as_str(), modified });
            }
        }
        for entry in &page.keys {
            self.write_value(&mut out, entry);
        }
        Ok(out.into())
    }

    /// The responses of a page of keys, and of the collections that it leaves; returns their number too.
    fn page_of_keys(&self, page: &KeyPage, collections: &mut Collections) -> (String, u64) {
        let (mut out, mut count) = (String::new(), 0_u64);
        for entry in &page.keys {
            let mut close = |prefix: &str, modified| {
                count = count.saturating_add(1);
                self.writer.write(&mut out, &Resource::Collection { prefix, modified });
            };
            collections.enter(entry.key.as_str(), entry.meta.modified, &mut close);
            count = count.saturating_add(1);
            self.write_value(&mut out, entry);
        }
        (out, count)
    }

    fn write_value(&self, out: &mut String, Entry { key, meta, is_damaged }: &Entry) {
        if *is_damaged {
            return self.writer.write(out, &Resource::Damaged { key: key.as_str() });
        }
        let content_type = content_type::for_key(key);
        self.writer.write(out, &Resource::Value { key: key.as_str(), meta: meta.clone(), content_type: &content_type });
    }
}

/// The response with a collection and its children. The first page is read at once, so that errors are found before the
/// response begins.
async fn children(mut walk: Walk, modified: SystemTime, times: Times) -> Result<Response, ApiError> {
    let mut start = walk.writer.start().to_owned();
    walk.writer.write(&mut start, &Resource::Collection { prefix: walk.pager.prefix.as_str(), modified });
    if let Some(page) = walk.pager.children().await? {
        start.push_str(&String::from_utf8_lossy(&walk.page_of_children(&page, times).await?));
    }
    let end = walk.writer.end();
    let rest = stream::try_unfold(walk, move |mut walk| async move {
        let Some(page) = walk.pager.children().await? else { return Ok::<_, StoreError>(None) };
        let text = walk.page_of_children(&page, times).await?;
        Ok(Some((text, walk)))
    });
    let once = |text: Bytes| stream::iter([Ok(text)]);
    Ok(response(Body::from_stream(once(start.into()).chain(rest).chain(once(Bytes::from_static(end.as_bytes()))))))
}

/// The response with a collection and everything below it. Collections follow what is below them.
///
/// Resources that do not fit into one page are counted before the response begins.
async fn descendants(mut walk: Walk, modified: SystemTime) -> Result<Response, ApiError> {
    let first = walk.pager.keys().await?.unwrap_or(KeyPage::new(Vec::new(), None));
    let next = walk.pager.next.clone();
    let mut counted = Collections::new(walk.pager.prefix.as_str(), modified);
    // The collection itself is one of them.
    let mut responses = count(&first, &mut counted).saturating_add(1);
    while responses <= MAX_RESPONSES
        && let Some(page) = walk.pager.keys().await?
    {
        responses = responses.saturating_add(count(&page, &mut counted));
    }
    if responses > MAX_RESPONSES {
        return Err(ApiError::propfind_finite_depth(MAX_RESPONSES));
    }
    walk.pager.next = next;
    let collections = Collections::new(walk.pager.prefix.as_str(), modified);
    let start = stream::iter([Ok(Bytes::from_static(walk.writer.start().as_bytes()))]);
    let state = Descent { walk, collections, page: Some(first), written: 0 };
    Ok(response(Body::from_stream(start.chain(stream::try_unfold(Some(state), Descent::next)))))
}

/// The number of responses that a page adds.
fn count(page: &KeyPage, collections: &mut Collections) -> u64 {
    let entered = |entry: &Entry| collections.enter(entry.key.as_str(), entry.meta.modified, |_, _| {});
    let entered: usize = page.keys.iter().map(entered).sum();
    u64::try_from(entered.saturating_add(page.keys.len())).unwrap_or(u64::MAX)
}

/// A listing of infinite depth that is being sent.
struct Descent {
    walk: Walk,
    collections: Collections,
    /// The next page, if it was read.
    page: Option<KeyPage>,
    written: u64,
}

impl Descent {
    /// The next part of the body, and the state after it; inner `None` after the last part.
    async fn next(state: Option<Self>) -> Result<Option<(Bytes, Option<Self>)>, BodyError> {
        let Some(mut state) = state else { return Ok(None) };
        let page = match state.page.take() {
            Some(page) => Some(page),
            None => state.walk.pager.keys().await?,
        };
        let Some(page) = page else {
            let mut out = String::new();
            let writer = &state.walk.writer;
            state.collections.finish(|prefix, modified| {
                writer.write(&mut out, &Resource::Collection { prefix, modified });
            });
            out.push_str(writer.end());
            return Ok(Some((out.into(), None)));
        };
        let (out, count) = state.walk.page_of_keys(&page, &mut state.collections);
        state.written = state.written.saturating_add(count);
        if state.written > MAX_RESPONSES {
            return Err(io::Error::other("keys were added while the response was sent").into());
        }
        Ok(Some((out.into(), Some(state))))
    }
}

/// The document of a prefix above what the caller may read: the way there, whether or not it exists.
fn way_below(session: &Session, prefix: &Prefix, depth: Depth, writer: &Multistatus, requested: SystemTime) -> Body {
    let children = match depth {
        Depth::Zero => Vec::new(),
        Depth::One | Depth::Infinity => session.principal().grants.children_towards(Right::Read, prefix),
    };
    let all = [prefix.clone()].into_iter().chain(children);
    let all: Vec<Prefix> = all.collect();
    let resource = |prefix| Resource::Collection { prefix, modified: requested };
    let resources: Vec<Resource<'_>> = all.iter().map(|prefix| resource(prefix.as_str())).collect();
    document(writer, &resources)
}

/// A document with few resources.
fn document(writer: &Multistatus, resources: &[Resource<'_>]) -> Body {
    let mut out = writer.start().to_owned();
    for resource in resources {
        writer.write(&mut out, resource);
    }
    out.push_str(writer.end());
    Body::from(out)
}

/// A response of status 207.
pub(super) fn response(body: Body) -> Response {
    (StatusCode::MULTI_STATUS, [(CONTENT_TYPE, dav::XML), (CACHE_CONTROL, REVALIDATE)], body).into_response()
}
