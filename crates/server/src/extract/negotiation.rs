//! Content negotiation for elements.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::{
    HeaderMap,
    header::{ACCEPT, ACCEPT_ENCODING},
    request::Parts,
};
use zarrd_wire::array::Format;

use super::quality_values::QualityValues;
use crate::{app::App, content_encoding::ContentEncoding};

/// The formats and content codings that the client accepts.
pub(crate) struct ContentNegotiation {
    accepted: QualityValues,
    encoding: ContentEncoding,
    accepts_identity: bool,
}

impl ContentNegotiation {
    /// The preferred format; JSON among equals. `None` if no format is acceptable.
    pub(crate) fn format(&self) -> Option<Format> {
        if self.accepted.is_empty() {
            return Format::ALL.first().copied();
        }
        let mut best = None;
        for format in Format::ALL {
            let quality = self.accepted.media_quality(format.media_type());
            if quality > best.map_or(0, |(_, quality)| quality) {
                best = Some((format, quality));
            }
        }
        best.map(|(format, _)| format)
    }

    /// The preferred content coding; the fastest among equals.
    pub(crate) fn encoding(&self) -> ContentEncoding {
        self.encoding
    }

    /// True if the client accepts a response without content coding.
    pub(crate) fn accepts_identity(&self) -> bool {
        self.accepts_identity
    }
}

impl FromRequestParts<App> for ContentNegotiation {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        Ok(negotiate(&parts.headers))
    }
}

fn negotiate(headers: &HeaderMap) -> ContentNegotiation {
    let encodings = QualityValues::from_headers(headers, ACCEPT_ENCODING);
    // Compression costs time on both sides, so only codings that the client names are used.
    let quality = |names: &[&str]| names.iter().find_map(|name| encodings.quality(name)).unwrap_or(0);
    let (zstd, gzip) = (quality(&["zstd"]), quality(&["gzip", "x-gzip"]));
    let min_quality = quality(&["identity"]).max(1);
    let encoding = match () {
        () if zstd >= gzip && zstd >= min_quality => ContentEncoding::Zstd,
        () if gzip >= min_quality => ContentEncoding::Gzip,
        () => ContentEncoding::Identity,
    };
    let accepts_identity = encodings.quality("identity").or_else(|| encodings.quality("*")) != Some(0);
    ContentNegotiation { accepted: QualityValues::from_headers(headers, ACCEPT), encoding, accepts_identity }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn best_accepted_format_is_chosen() {
        for (accept, format) in [
            (None, Some(Format::Json)),
            (Some(""), Some(Format::Json)),
            (Some("*/*"), Some(Format::Json)),
            (Some("application/*"), Some(Format::Json)),
            (Some("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"), Some(Format::Json)),
            (Some("image/avif,image/webp,image/*,*/*;q=0.8"), Some(Format::Png)),
            (Some("application/octet-stream"), Some(Format::Raw)),
            (Some("Application/X-NPY, application/json;q=0.9"), Some(Format::Npy)),
            (Some("text/csv;q=0.5, application/json;q=0.4"), Some(Format::Csv)),
            (Some("application/json;q=0, */*;q=0.1"), Some(Format::Raw)),
            (Some("text/html"), None),
            (Some("*/*;q=0"), None),
        ] {
            let mut headers = HeaderMap::new();
            headers.extend(accept.map(|accept| (ACCEPT, HeaderValue::from_static(accept))));
            assert_eq!(negotiate(&headers).format(), format, "{accept:?}");
        }
    }

    #[test]
    fn best_accepted_encoding_is_chosen() {
        for (accept, encoding) in [
            (None, ContentEncoding::Identity),
            (Some(""), ContentEncoding::Identity),
            (Some("*"), ContentEncoding::Identity),
            (Some("gzip, deflate, br, zstd"), ContentEncoding::Zstd),
            (Some("gzip, deflate"), ContentEncoding::Gzip),
            (Some("X-GZIP"), ContentEncoding::Gzip),
            (Some("zstd;q=0.5, gzip;q=0.6"), ContentEncoding::Gzip),
            (Some("zstd;q=0, gzip;q=0"), ContentEncoding::Identity),
            (Some("identity, gzip;q=0.9"), ContentEncoding::Identity),
            (Some("identity;q=0.5, gzip;q=0.9"), ContentEncoding::Gzip),
            (Some("br"), ContentEncoding::Identity),
        ] {
            let mut headers = HeaderMap::new();
            headers.extend(accept.map(|accept| (ACCEPT_ENCODING, HeaderValue::from_static(accept))));
            assert_eq!(negotiate(&headers).encoding(), encoding, "{accept:?}");
        }
    }

    #[test]
    fn identity_is_accepted_unless_excluded() {
        for (accept, accepted) in [
            (None, true),
            (Some("gzip"), true),
            (Some("gzip, identity;q=0"), false),
            (Some("gzip, *;q=0"), false),
            (Some("identity;q=0.1, *;q=0"), true),
        ] {
            let mut headers = HeaderMap::new();
            headers.extend(accept.map(|accept| (ACCEPT_ENCODING, HeaderValue::from_static(accept))));
            assert_eq!(negotiate(&headers).accepts_identity(), accepted, "{accept:?}");
        }
    }
}
