//! Share links: credentials at the beginning of a path.

use std::sync::Arc;

use axum::extract::Request;
use http::{Uri, uri::PathAndQuery};
use zarrd_wire::routes::SHARE_LINK_ROOT;

/// The credential of a share link.
#[derive(Clone)]
pub(crate) struct ShareLink(pub(super) Arc<str>);

/// Removes a share link from the beginning of a path: the rest is the usual path.
///
/// From here on no part of the server, its log included, sees the link in a path.
pub(crate) fn strip_share_link(request: &mut Request) {
    let Some((link, rest)) = split(request.uri()) else { return };
    let link = ShareLink(link.into());
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = Some(rest);
    // A URI with a valid path and no other change is valid.
    let Ok(uri) = Uri::from_parts(parts) else { return };
    *request.uri_mut() = uri;
    request.extensions_mut().insert(link);
}

/// Splits a path into a share link and the rest with the query, which is the root's if nothing follows the link. A path
/// with an empty link before more has none, and matches no route.
fn split(uri: &Uri) -> Option<(&str, PathAndQuery)> {
    let path = uri.path().strip_prefix(SHARE_LINK_ROOT).filter(|path| !path.starts_with('/'))?;
    let (link, rest) = path.split_once('/').unwrap_or((path, ""));
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    Some((link, format!("/{rest}{query}").try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn links_are_removed_from_paths() {
        for (uri, link, rest) in [
            ("/s/abc/store/a%20b?x=1", Some("abc"), "/store/a%20b?x=1"),
            ("/s/abc/", Some("abc"), "/"),
            ("/s/abc//store/a", Some("abc"), "//store/a"),
            ("/s/a/s/b/store/", Some("a"), "/s/b/store/"),
            ("/s/abc", Some("abc"), "/"),
            ("/s/abc?x", Some("abc"), "/?x"),
            ("/s/", Some(""), "/"),
            ("/s//", None, "/s//"),
            ("/s//abc/store/", None, "/s//abc/store/"),
            ("/store/s/abc", None, "/store/s/abc"),
            ("/S/abc/store/", None, "/S/abc/store/"),
            ("/s", None, "/s"),
        ] {
            let mut request = Request::builder().uri(uri).body(Body::empty()).unwrap();
            strip_share_link(&mut request);
            let found = request.extensions().get::<ShareLink>().map(|ShareLink(link)| &**link);
            assert_eq!((found, request.uri().to_string().as_str()), (link, rest), "{uri}");
        }
    }
}
