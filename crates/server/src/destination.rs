//! The destination of a copy or a move.

use axum::extract::Request;
use http::{Extensions, HeaderMap, Uri};
use zarrd_wire::{
    dav::{self, DavHeaderError},
    problem::{Problem, ProblemType},
    routes::{STORE_ROOT, Slashes, StoreTarget, parse_store},
};

use crate::{app::App, error::ApiError, surface::Surface};

const DESTINATION: &str = "Destination";

/// The key or prefix that the header `Destination` of a request names.
pub(crate) fn of_request(app: &App, request: &Request) -> Result<StoreTarget, ApiError> {
    parse(app, request.headers(), request.uri(), request.extensions())
}

/// The key or prefix that the header `Destination` of a request with these parts names.
pub(crate) fn parse(
    app: &App,
    headers: &HeaderMap,
    uri: &Uri,
    extensions: &Extensions,
) -> Result<StoreTarget, ApiError> {
    let path = dav::destination(headers, uri)?;
    target(app, &path, extensions)
}

/// The key or prefix that a URL in a header of such a request names.
pub(crate) fn of_url(
    app: &App,
    url: &str,
    headers: &HeaderMap,
    uri: &Uri,
    extensions: &Extensions,
) -> Result<StoreTarget, ApiError> {
    target(app, &dav::own_path(url, headers, uri)?, extensions)
}

fn target(app: &App, path: &str, extensions: &Extensions) -> Result<StoreTarget, ApiError> {
    let rest = match Surface::of(extensions) {
        Surface::Root => path.strip_prefix('/'),
        Surface::Api | Surface::S3 => app.settings().base_path.strip(path).unwrap_or(path).strip_prefix(STORE_ROOT),
    };
    let rest = rest.ok_or_else(|| ApiError::invalid_header(DESTINATION, "Destination is not below /store/"))?;
    parse_store(rest, Slashes::Refuse).map_err(|error| ApiError::invalid_header(DESTINATION, error.to_string()))
}

impl From<DavHeaderError> for ApiError {
    fn from(error: DavHeaderError) -> Self {
        match error {
            DavHeaderError::OtherServer => Self::new(Problem::new(ProblemType::ForeignDestination)),
            _ => Self::invalid_header(error.header(), error.to_string()),
        }
    }
}
