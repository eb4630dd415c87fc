//! Content negotiation for listings.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::{
    HeaderMap, Uri,
    header::{ACCEPT, USER_AGENT},
    request::Parts,
};
use zarrd_wire::query::{LISTING_PARAMETERS, names};

use super::quality_values::QualityValues;
use crate::app::App;

/// A format of listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListingFormat {
    /// A JSON document with one page.
    Json,
    /// One JSON document per line, for all entries.
    Ndjson,
    /// An HTML page with links to all entries.
    Html,
}

/// The spelling of links in a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// Relative references, percent-encoded.
    References,
    /// Names, for fsspec, which encodes them when it requests them.
    Names,
}

/// A client's preference among what is at a path for programs and for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DocumentPreference {
    /// A page in HTML.
    Html,
    /// Anything else.
    Other,
}

impl FromRequestParts<App> for DocumentPreference {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        let accepted = QualityValues::from_headers(&parts.headers, ACCEPT);
        let quality = |format: ListingFormat| accepted.media_quality(format.media_type());
        Ok(match quality(ListingFormat::Html) > quality(ListingFormat::Json) {
            true => Self::Html,
            false => Self::Other,
        })
    }
}

/// User agents (RFC 9110, section 10.1.5) that list directories by following links, although they accept any type.
/// fsspec identifies itself by its HTTP library.
const LINK_FOLLOWERS: &[&str] = &["aiohttp", "GDAL", "HTTPDirFS", "lftp", "rclone", "Wget", "Wget2"];

/// The HTTP library of fsspec.
const FSSPEC: &[&str] = &["aiohttp"];

/// The library of clients that take the whole path of a URL in a response of WebDAV for a key: obstore and Rust's
/// `object_store`.
const WHOLE_PATHS: &[&str] = &["object_store"];

/// True if the client takes whole paths for keys.
pub(crate) fn takes_whole_paths(headers: &HeaderMap) -> bool {
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok());
    agent.is_some_and(|agent| names_product(agent, WHOLE_PATHS))
}

/// The client's preferences.
pub(crate) struct ListingPreferences {
    accepted: QualityValues,
    prefers_links: bool,
    links: Links,
}

impl ListingPreferences {
    /// Returns the preferred format among `offered`, which is in the server's order of preference.
    ///
    /// Link followers get links, unless they name a media type or use a query parameter of listings.
    pub(crate) fn best(&self, offered: &[ListingFormat]) -> ListingFormat {
        if self.prefers_links && offered.contains(&ListingFormat::Html) && self.names_no_type() {
            return ListingFormat::Html;
        }
        let mut best = (offered.first().copied().unwrap_or(ListingFormat::Json), 0);
        for &format in offered {
            let quality = self.accepted.media_quality(format.media_type());
            if quality > best.1 {
                best = (format, quality);
            }
        }
        best.0
    }

    /// The spelling of links that the client understands.
    pub(crate) fn links(&self) -> Links {
        self.links
    }

    fn names_no_type(&self) -> bool {
        self.accepted.names().all(|range| range == "*/*")
    }
}

impl ListingFormat {
    fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Ndjson => "application/x-ndjson",
            Self::Html => "text/html",
        }
    }
}

impl FromRequestParts<App> for ListingPreferences {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        Ok(preferences(&parts.headers, &parts.uri))
    }
}

fn preferences(headers: &HeaderMap, uri: &Uri) -> ListingPreferences {
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let query = uri.query().unwrap_or_default();
    let links = if names_product(agent, FSSPEC) { Links::Names } else { Links::References };
    let prefers_links =
        names_product(agent, LINK_FOLLOWERS) && !LISTING_PARAMETERS.iter().any(|parameter| names(query, parameter));
    ListingPreferences { accepted: QualityValues::from_headers(headers, ACCEPT), prefers_links, links }
}

/// True if one of the products in a user agent is one of these.
fn names_product(agent: &str, known: &[&str]) -> bool {
    let mut products = agent.split(' ').filter_map(|word| Some(word.split_once('/')?.0));
    products.any(|product| known.iter().any(|known| known.eq_ignore_ascii_case(product)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    const DIR: &[ListingFormat] = &[ListingFormat::Json, ListingFormat::Html];
    const KEYS: &[ListingFormat] = &[ListingFormat::Json, ListingFormat::Ndjson];

    fn best(accept: Option<&'static str>, agent: &'static str, offered: &[ListingFormat]) -> ListingFormat {
        best_for("/store/a/", accept, agent, offered)
    }

    fn best_for(
        uri: &'static str,
        accept: Option<&'static str>,
        agent: &'static str,
        offered: &[ListingFormat],
    ) -> ListingFormat {
        let mut headers = HeaderMap::new();
        if let Some(accept) = accept {
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
        }
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        preferences(&headers, &Uri::from_static(uri)).best(offered)
    }

    #[test]
    fn clients_get_their_preferred_format() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        let fsspec = "Python/3.12 aiohttp/3.14.3";
        for (accept, agent, format) in [
            (Some(browser), "Mozilla/5.0", ListingFormat::Html),
            (Some("*/*"), "curl/8.5.0", ListingFormat::Json),
            (None, "", ListingFormat::Json),
            (Some("*/*"), fsspec, ListingFormat::Html),
            (None, fsspec, ListingFormat::Html),
            (Some("application/json"), fsspec, ListingFormat::Json),
            (Some("*/*"), "GDAL/3.12.0", ListingFormat::Html),
            (Some("*/*"), "Wget/1.21.3", ListingFormat::Html),
            (Some("*/*"), "wget2/2.1.0", ListingFormat::Html),
            (None, "rclone/v1.60.1-DEV", ListingFormat::Html),
            (None, "lftp/4.9.2", ListingFormat::Html),
            (Some("application/json"), "Wget/1.21.3", ListingFormat::Json),
            (Some("*/*"), "Wget", ListingFormat::Json),
            (Some("*/*"), "notwget/1.0 (like Wget)", ListingFormat::Json),
            (Some("*/*"), "aria2/1.36.0", ListingFormat::Json),
            (Some("*/*"), "python-requests/2.32.3", ListingFormat::Json),
            (Some("???, ,;;;=,/,q=1"), "curl/8.5.0", ListingFormat::Json),
            (Some("text/html"), "curl/8.5.0", ListingFormat::Html),
            (Some("TEXT/*"), "curl/8.5.0", ListingFormat::Html),
            (Some("text/html;q=0.5, application/json"), "curl/8.5.0", ListingFormat::Json),
            (Some("text/html;q=0, */*"), "curl/8.5.0", ListingFormat::Json),
            (Some("image/png"), "curl/8.5.0", ListingFormat::Json),
            (Some("text/html;q=NaN, application/json;q=-1, ;;, q"), "curl/8.5.0", ListingFormat::Json),
        ] {
            assert_eq!(best(accept, agent, DIR), format, "{accept:?} {agent}");
        }
        assert_eq!(best(Some("application/x-ndjson"), "curl/8.5.0", KEYS), ListingFormat::Ndjson);
        assert_eq!(best(Some("*/*"), fsspec, KEYS), ListingFormat::Json);
        for uri in ["/store/a/?list=dir", "/store/a/?limit=5", "/store/a/?%63ursor=x"] {
            assert_eq!(best_for(uri, Some("*/*"), "Wget/1.21.3", DIR), ListingFormat::Json, "{uri}");
            assert_eq!(best_for(uri, Some(browser), "Mozilla/5.0", DIR), ListingFormat::Html, "{uri}");
        }
        assert_eq!(best_for("/store/a/?_=17", Some("*/*"), "Wget/1.21.3", DIR), ListingFormat::Html);
        assert_eq!(best(Some(browser), "Mozilla/5.0", KEYS), ListingFormat::Json);
    }
}
