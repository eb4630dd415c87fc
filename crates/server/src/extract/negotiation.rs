//! In which form elements are wanted.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::{
    HeaderMap,
    header::{ACCEPT, ACCEPT_ENCODING},
    request::Parts,
};
use wire::array::Format;

use super::quality_values::Weighted;
use crate::{app::App, content_encoding::Coding};

/// What the client says of formats and content codings.
pub(crate) struct Forms {
    accepted: Weighted,
    coding: Coding,
    takes_identity: bool,
}

impl Forms {
    /// The format that is accepted best, and JSON among equals. `None` where none is accepted.
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

    /// The content coding that is accepted best, and the quickest among equals.
    pub(crate) fn coding(&self) -> Coding {
        self.coding
    }

    /// True if an answer without a coding is accepted.
    pub(crate) fn takes_identity(&self) -> bool {
        self.takes_identity
    }
}

impl FromRequestParts<App> for Forms {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        Ok(forms(&parts.headers))
    }
}

fn forms(headers: &HeaderMap) -> Forms {
    let codings = Weighted::of(headers, ACCEPT_ENCODING);
    // A coding costs time on either side, so only those are used that the client names.
    let quality = |names: &[&str]| names.iter().find_map(|name| codings.quality(name)).unwrap_or(0);
    let (zstd, gzip) = (quality(&["zstd"]), quality(&["gzip", "x-gzip"]));
    let least = quality(&["identity"]).max(1);
    let coding = match () {
        () if zstd >= gzip && zstd >= least => Coding::Zstd,
        () if gzip >= least => Coding::Gzip,
        () => Coding::Identity,
    };
    let takes_identity = codings.quality("identity").or_else(|| codings.quality("*")) != Some(0);
    Forms { accepted: Weighted::of(headers, ACCEPT), coding, takes_identity }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn formats() {
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
            assert_eq!(forms(&headers).format(), format, "{accept:?}");
        }
    }

    #[test]
    fn codings() {
        for (accept, coding) in [
            (None, Coding::Identity),
            (Some(""), Coding::Identity),
            (Some("*"), Coding::Identity),
            (Some("gzip, deflate, br, zstd"), Coding::Zstd),
            (Some("gzip, deflate"), Coding::Gzip),
            (Some("X-GZIP"), Coding::Gzip),
            (Some("zstd;q=0.5, gzip;q=0.6"), Coding::Gzip),
            (Some("zstd;q=0, gzip;q=0"), Coding::Identity),
            (Some("identity, gzip;q=0.9"), Coding::Identity),
            (Some("identity;q=0.5, gzip;q=0.9"), Coding::Gzip),
            (Some("br"), Coding::Identity),
        ] {
            let mut headers = HeaderMap::new();
            headers.extend(accept.map(|accept| (ACCEPT_ENCODING, HeaderValue::from_static(accept))));
            assert_eq!(forms(&headers).coding(), coding, "{accept:?}");
        }
    }

    #[test]
    fn answers_without_a_coding() {
        for (accept, taken) in [
            (None, true),
            (Some("gzip"), true),
            (Some("gzip, identity;q=0"), false),
            (Some("gzip, *;q=0"), false),
            (Some("identity;q=0.1, *;q=0"), true),
        ] {
            let mut headers = HeaderMap::new();
            headers.extend(accept.map(|accept| (ACCEPT_ENCODING, HeaderValue::from_static(accept))));
            assert_eq!(forms(&headers).takes_identity(), taken, "{accept:?}");
        }
    }
}
