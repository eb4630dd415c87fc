//! The page that shows hierarchies and arrays, and its files.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{
    Extensions, HeaderName, HeaderValue, Uri,
    header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, VARY},
};
use zarrd_wire::routes;

use crate::{
    admission,
    app::App,
    blocking::run_blocking,
    content_encoding::ContentEncoding,
    error::ApiError,
    extract::{ContentNegotiation, DocumentPreference},
    headers::REVALIDATE,
};

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");
/// The content of a name never changes.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const POLICY: HeaderValue = HeaderValue::from_static(zarrd_page::CONTENT_SECURITY_POLICY);
const ACCEPT: HeaderValue = HeaderValue::from_static("Accept");
const ACCEPT_ENCODING: HeaderValue = HeaderValue::from_static("Accept-Encoding");

/// `GET /`: the page, for clients that prefer HTML to JSON. Others find nothing.
pub(crate) async fn root(
    State(app): State<App>,
    extensions: Extensions,
    preference: DocumentPreference,
) -> Result<Response, ApiError> {
    match preference {
        DocumentPreference::Html => Ok(([(VARY, ACCEPT)], document(&app, &extensions)).into_response()),
        DocumentPreference::Other => Err(ApiError::not_found(app.settings().base_path.as_str(), "/")),
    }
}

/// `GET /browse/{path}`: the page on a node. Which it is, and whether it exists, is found out by the page's requests.
pub(crate) async fn browse(State(app): State<App>, extensions: Extensions) -> Response {
    document(&app, &extensions)
}

/// `GET /assets/{file}`: a file of the page.
pub(crate) async fn asset(
    State(app): State<App>,
    uri: Uri,
    negotiation: ContentNegotiation,
) -> Result<Response, ApiError> {
    let missing = || ApiError::not_found(app.settings().base_path.as_str(), uri.path());
    let file = routes::parse_asset(uri.path()).and_then(zarrd_page::file).ok_or_else(missing)?;
    let encoding = negotiation.encoding();
    let content = match encoding {
        ContentEncoding::Identity => file.identity.clone(),
        // A file is compressed once, which takes as long as a slow disk.
        ContentEncoding::Zstd => run_blocking(|| file.zstd().clone()).await?,
        ContentEncoding::Gzip => run_blocking(|| file.gzip().clone()).await?,
    };
    let media_type = HeaderValue::from_static(file.media_type);
    let headers = [(CONTENT_TYPE, media_type), (CACHE_CONTROL, IMMUTABLE), (VARY, ACCEPT_ENCODING)];
    let encoding: Option<(HeaderName, HeaderValue)> = encoding.header().map(|value| (CONTENT_ENCODING, value));
    let mut response = (headers, content).into_response();
    response.headers_mut().extend(encoding);
    Ok(response)
}

/// The document, with the beginnings of the URLs of this server. Files are the same for all callers, so their URLs have
/// no share link.
fn document(app: &App, extensions: &Extensions) -> Response {
    let base = app.settings().base_path.as_str();
    let session = admission::session_of(extensions, app);
    let (files, api) = (format!("{base}{}", routes::ASSETS_ROOT), format!("{base}{}", session.base_path()));
    let html = zarrd_page::document(&files, &api, app.settings().s3.url.as_deref().unwrap_or_default());
    let headers = [
        (CONTENT_TYPE, HTML),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, REVALIDATE),
        (REFERRER_POLICY, NO_REFERRER),
    ];
    (headers, html).into_response()
}
