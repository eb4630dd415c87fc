//! Which form of a listing is wanted.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::{
    HeaderMap,
    header::{ACCEPT, USER_AGENT},
    request::Parts,
};

use super::weighted::Weighted;
use crate::state::App;

/// A form that a listing can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Media {
    /// One JSON document with one page.
    Json,
    /// One JSON document per line, to the end.
    Ndjson,
    /// A page of links, to the end.
    Html,
}

/// What the client wants.
pub(crate) struct Wanted {
    accepted: Weighted,
    reads_links: bool,
}

impl Wanted {
    /// The best of `offered`, which is in the server's order of preference.
    ///
    /// fsspec (which names itself aiohttp) and GDAL list directories by following links, yet accept anything: they get
    /// links unless they say otherwise.
    pub(crate) fn best(&self, offered: &[Media]) -> Media {
        if self.reads_links && offered.contains(&Media::Html) && self.names_nothing() {
            return Media::Html;
        }
        let mut best = (offered.first().copied().unwrap_or(Media::Json), 0);
        for &media in offered {
            let quality = self.accepted.media_quality(media.media_type());
            if quality > best.1 {
                best = (media, quality);
            }
        }
        best.0
    }

    fn names_nothing(&self) -> bool {
        self.accepted.names().all(|range| range == "*/*")
    }
}

impl Media {
    fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Ndjson => "application/x-ndjson",
            Self::Html => "text/html",
        }
    }
}

impl FromRequestParts<App> for Wanted {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        Ok(wanted(&parts.headers))
    }
}

fn wanted(headers: &HeaderMap) -> Wanted {
    let agent = headers.get(USER_AGENT).map_or(&[][..], |agent| agent.as_bytes());
    let reads_links = agent.starts_with(b"GDAL/") || agent.windows(8).any(|part| part == b"aiohttp/");
    Wanted { accepted: Weighted::of(headers, ACCEPT), reads_links }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    const DIR: &[Media] = &[Media::Json, Media::Html];
    const KEYS: &[Media] = &[Media::Json, Media::Ndjson];

    fn best(accept: Option<&'static str>, agent: &'static str, offered: &[Media]) -> Media {
        let mut headers = HeaderMap::new();
        if let Some(accept) = accept {
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
        }
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        wanted(&headers).best(offered)
    }

    #[test]
    fn listings_as_each_client_reads_them() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        let fsspec = "Python/3.12 aiohttp/3.14.3";
        for (accept, agent, media) in [
            (Some(browser), "Mozilla/5.0", Media::Html),
            (Some("*/*"), "curl/8.5.0", Media::Json),
            (None, "", Media::Json),
            (Some("*/*"), fsspec, Media::Html),
            (None, fsspec, Media::Html),
            (Some("application/json"), fsspec, Media::Json),
            (Some("*/*"), "GDAL/3.12.0", Media::Html),
            (Some("text/html"), "curl/8.5.0", Media::Html),
            (Some("TEXT/*"), "curl/8.5.0", Media::Html),
            (Some("text/html;q=0.5, application/json"), "curl/8.5.0", Media::Json),
            (Some("text/html;q=0, */*"), "curl/8.5.0", Media::Json),
            (Some("image/png"), "curl/8.5.0", Media::Json),
            (Some("text/html;q=NaN, application/json;q=-1, ;;, q"), "curl/8.5.0", Media::Json),
        ] {
            assert_eq!(best(accept, agent, DIR), media, "{accept:?} {agent}");
        }
        assert_eq!(best(Some("application/x-ndjson"), "curl/8.5.0", KEYS), Media::Ndjson);
        assert_eq!(best(Some("*/*"), fsspec, KEYS), Media::Json);
        assert_eq!(best(Some(browser), "Mozilla/5.0", KEYS), Media::Json);
    }
}
