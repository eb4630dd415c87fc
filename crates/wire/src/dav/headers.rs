//! The headers `Depth`, `Overwrite` and `Destination` (RFC 4918, section 10).

use http::{HeaderMap, HeaderName, Uri, header::HOST, uri::Authority};

/// The supported classes of WebDAV.
pub const DAV: HeaderName = HeaderName::from_static("dav");
/// How far below a collection a request goes.
pub const DEPTH: HeaderName = HeaderName::from_static("depth");
/// The URL to copy or move to.
pub const DESTINATION: HeaderName = HeaderName::from_static("destination");
/// Whether the destination may be replaced: `T` or `F`.
pub const OVERWRITE: HeaderName = HeaderName::from_static("overwrite");
/// The `Host` of the client's request, as proxies name it.
pub const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// How far below a collection a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The collection alone.
    Zero,
    /// What is directly below it, too.
    One,
    /// Everything below it, too.
    Infinity,
}

/// The treatment of a destination that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// It is replaced.
    Replace,
    /// The request fails.
    Fail,
}

/// A header of WebDAV is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DavHeaderError {
    /// The depth is none of the three.
    #[error("Depth is `0`, `1` or `infinity`")]
    Depth,
    /// The header is neither `T` nor `F`.
    #[error("Overwrite is `T` or `F`")]
    Overwrite,
    /// The request needs a destination.
    #[error("Destination is missing")]
    NoDestination,
    /// The destination is neither an absolute path nor an `http` or `https` URL.
    #[error("Destination is neither an absolute path nor an absolute URL")]
    Destination,
    /// The destination is on another server.
    #[error("Destination is on another server")]
    OtherServer,
}

impl DavHeaderError {
    /// The name of the header.
    pub fn header(self) -> &'static str {
        match self {
            Self::Depth => "Depth",
            Self::Overwrite => "Overwrite",
            Self::NoDestination | Self::Destination | Self::OtherServer => "Destination",
        }
    }
}

/// The depth of a request, if it has one.
pub fn depth(headers: &HeaderMap) -> Result<Option<Depth>, DavHeaderError> {
    let Some(text) = single(headers, &DEPTH, DavHeaderError::Depth)? else { return Ok(None) };
    match text {
        "0" => Ok(Some(Depth::Zero)),
        "1" => Ok(Some(Depth::One)),
        text if text.eq_ignore_ascii_case("infinity") => Ok(Some(Depth::Infinity)),
        _ => Err(DavHeaderError::Depth),
    }
}

/// The treatment of a destination that exists, which is replaced by default.
pub fn overwrite(headers: &HeaderMap) -> Result<Overwrite, DavHeaderError> {
    match single(headers, &OVERWRITE, DavHeaderError::Overwrite)? {
        None | Some("T" | "t") => Ok(Overwrite::Replace),
        Some("F" | "f") => Ok(Overwrite::Fail),
        Some(_) => Err(DavHeaderError::Overwrite),
    }
}

/// The path of the destination of a request with these headers and URI, percent-encoded as it was sent.
pub fn destination(headers: &HeaderMap, uri: &Uri) -> Result<String, DavHeaderError> {
    let text = single(headers, &DESTINATION, DavHeaderError::Destination)?.ok_or(DavHeaderError::NoDestination)?;
    own_path(text, headers, uri)
}

/// The path of a URL in a header of a request, percent-encoded as it was sent.
///
/// A URL is one of this server if its authority is that of the request: of its URI, of `Host`, or of
/// `X-Forwarded-Host`, which only trusted proxies may send.
pub fn own_path(url: &str, headers: &HeaderMap, uri: &Uri) -> Result<String, DavHeaderError> {
    let parsed: Uri = url.parse().map_err(|_| DavHeaderError::Destination)?;
    match (parsed.scheme_str(), parsed.authority()) {
        (None, None) if url.starts_with('/') => {}
        (Some("http" | "https"), Some(authority)) => {
            let named = [HOST, FORWARDED_HOST].into_iter().flat_map(|name| headers.get_all(name));
            let named = named.filter_map(|host| host.to_str().ok()?.trim().parse::<Authority>().ok());
            let mut own = uri.authority().cloned().into_iter().chain(named);
            if !own.any(|own| is_same_host(&own, authority)) {
                return Err(DavHeaderError::OtherServer);
            }
        }
        (Some(_), Some(_)) => return Err(DavHeaderError::OtherServer),
        _ => return Err(DavHeaderError::Destination),
    }
    Ok(parsed.path().to_owned())
}

/// True if two authorities name one host and port. The default port of a scheme counts as none.
fn is_same_host(one: &Authority, other: &Authority) -> bool {
    let port = |authority: &Authority| authority.port_u16().filter(|port| ![80, 443].contains(port));
    one.host().eq_ignore_ascii_case(other.host()) && port(one) == port(other)
}

/// The text of a header that occurs at most once.
fn single<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
    invalid: DavHeaderError,
) -> Result<Option<&'h str>, DavHeaderError> {
    let mut lines = headers.get_all(name).iter();
    let Some(first) = lines.next() else { return Ok(None) };
    match lines.next() {
        None => first.to_str().map(|text| Some(text.trim())).map_err(|_| invalid),
        Some(_) => Err(invalid),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(lines: &[(&HeaderName, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append((*name).clone(), HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn depths_are_parsed() {
        let parse = |text| depth(&headers(&[(&DEPTH, text)]));
        assert_eq!(depth(&HeaderMap::new()), Ok(None));
        assert_eq!(parse("0"), Ok(Some(Depth::Zero)));
        assert_eq!(parse(" 1 "), Ok(Some(Depth::One)));
        assert_eq!(parse("Infinity"), Ok(Some(Depth::Infinity)));
        for bad in ["", "2", "-1", "01", "infinite", "1,noroot", "0, 1"] {
            assert_eq!(parse(bad), Err(DavHeaderError::Depth), "{bad}");
        }
        assert_eq!(depth(&headers(&[(&DEPTH, "0"), (&DEPTH, "0")])), Err(DavHeaderError::Depth));
    }

    #[test]
    fn existing_destinations_are_replaced_by_default() {
        let parse = |text| overwrite(&headers(&[(&OVERWRITE, text)]));
        assert_eq!(overwrite(&HeaderMap::new()), Ok(Overwrite::Replace));
        assert_eq!((parse("T"), parse("F")), (Ok(Overwrite::Replace), Ok(Overwrite::Fail)));
        assert_eq!((parse("true"), parse("")), (Err(DavHeaderError::Overwrite), Err(DavHeaderError::Overwrite)));
    }

    #[test]
    fn destinations_are_on_this_server() {
        let uri = Uri::from_static("/store/a");
        let parse = |text| destination(&headers(&[(&HOST, "Zarr.example:8000"), (&DESTINATION, text)]), &uri);
        let path = |path: &str| Ok(path.to_owned());
        for same in ["http://zarr.example:8000/store/b%20c", "https://user:secret@ZARR.example:8000/store/b%20c?x=1"] {
            assert_eq!(parse(same), path("/store/b%20c"), "{same}");
        }
        assert_eq!(parse("/store/b/"), path("/store/b/"));
        assert_eq!(parse("http://zarr.example:8000"), path("/"));
        for other in ["http://zarr.example/store/b", "http://example:8000/b", "ftp://zarr.example:8000/store/b"] {
            assert_eq!(parse(other), Err(DavHeaderError::OtherServer), "{other}");
        }
        for bad in ["", "store/b", "*", "http:///b", "zarr.example:8000", "/store/ b"] {
            assert_eq!(parse(bad), Err(DavHeaderError::Destination), "{bad}");
        }
        assert_eq!(destination(&headers(&[(&HOST, "a")]), &uri), Err(DavHeaderError::NoDestination));
    }

    #[test]
    fn default_ports_and_names_of_proxies_count() {
        let uri = Uri::from_static("/store/a");
        for host in [(&HOST, "a:80"), (&HOST, "a"), (&FORWARDED_HOST, "a")] {
            let headers = headers(&[host, (&DESTINATION, "https://a:443/store/b")]);
            assert!(destination(&headers, &uri).is_ok(), "{host:?}");
        }
        let http2 = Uri::from_static("https://a/store/a");
        assert!(destination(&headers(&[(&DESTINATION, "https://a/store/b")]), &http2).is_ok());
    }
}
