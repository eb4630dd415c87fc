//! URLs of servers.

use std::{fmt, str::FromStr};

use reqwest::Url;

/// URL of a server: `http(s)://host[:port][/path]`.
///
/// All requests of a client go to URLs below it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct BaseUrl {
    url: Url,
    /// The URL without a trailing `/`, to which the target of a request is appended.
    text: String,
}

/// Errors of parsing a [`BaseUrl`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaseUrlError {
    /// The text is not a URL.
    #[error("not a URL: {reason}")]
    NotAUrl {
        /// Reason.
        reason: String,
    },
    /// The scheme is neither `http` nor `https`.
    #[error("unsupported scheme {scheme}: use http or https")]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// The URL has a user name or password, which the message does not repeat.
    #[error("the URL of a server must not contain a user name or password; set a token instead")]
    Credentials,
    /// The URL has a query.
    #[error("the URL of a server must not have a query")]
    Query,
    /// The URL has a fragment.
    #[error("the URL of a server must not have a fragment")]
    Fragment,
    /// The path has an empty segment.
    #[error("the path of the URL of a server must not have an empty segment")]
    EmptySegment,
}

impl BaseUrl {
    /// Parses a URL. A trailing `/` is ignored.
    pub fn parse(text: &str) -> Result<Self, BaseUrlError> {
        let mut url = Url::parse(text).map_err(|error| BaseUrlError::NotAUrl { reason: error.to_string() })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BaseUrlError::Scheme { scheme: url.scheme().to_owned() });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BaseUrlError::Credentials);
        }
        if url.query().is_some() {
            return Err(BaseUrlError::Query);
        }
        if url.fragment().is_some() {
            return Err(BaseUrlError::Fragment);
        }
        if url.path().contains("//") {
            return Err(BaseUrlError::EmptySegment);
        }
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        let text = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self { url, text })
    }

    /// The URL, without a trailing `/`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The origin: scheme, host and port, such as `https://lab.example:8000`, without a port that is the scheme's own.
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    pub(crate) fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The URL of a target: a percent-encoded path that begins with `/`, and optionally a query.
    pub(crate) fn target(&self, target: &str) -> String {
        format!("{}{target}", self.text)
    }

    /// True if `location`, the target of a redirect from `path`, is `path` with a trailing `/`.
    pub(crate) fn is_directory_of(&self, location: &str, path: &str) -> bool {
        let Ok(from) = Url::parse(&self.target(path)) else { return false };
        let Ok(to) = from.join(location) else { return false };
        to.path().strip_suffix('/') == Some(from.path())
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for BaseUrl {
    type Err = BaseUrlError;

    fn from_str(text: &str) -> Result<Self, BaseUrlError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_with_and_without_a_path_are_parsed() {
        for (text, base) in [
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
            ("http://lab:80/", "http://lab"),
            ("HTTPS://Lab.example/zarr/", "https://lab.example/zarr"),
            ("http://[::1]:8000/a/b", "http://[::1]:8000/a/b"),
        ] {
            let parsed = BaseUrl::parse(text).unwrap();
            assert_eq!(parsed.as_str(), base);
            assert_eq!(parsed.target("/store/k"), format!("{base}/store/k"));
        }
    }

    #[test]
    fn other_urls_are_errors() {
        for (text, error) in [
            ("ftp://lab/", BaseUrlError::Scheme { scheme: "ftp".into() }),
            ("lab:8000", BaseUrlError::Scheme { scheme: "lab".into() }),
            ("http://me:secret@lab/", BaseUrlError::Credentials),
            ("http://me@lab/", BaseUrlError::Credentials),
            ("http://lab/?a=b", BaseUrlError::Query),
            ("http://lab/#a", BaseUrlError::Fragment),
            ("http://lab/a//", BaseUrlError::EmptySegment),
        ] {
            assert_eq!(BaseUrl::parse(text), Err(error), "{text}");
        }
        for text in ["", "lab", "http://", "http://lab:99999/", "/store"] {
            assert!(matches!(BaseUrl::parse(text), Err(BaseUrlError::NotAUrl { .. })), "{text}");
        }
    }

    #[test]
    fn redirect_to_the_directory_is_recognized() {
        let base = BaseUrl::parse("http://lab/mount").unwrap();
        let path = "/store/a%20b";
        for yes in
            ["http://lab/mount/store/a%20b/", "/mount/store/a%20b/", "a%20b/", "http://elsewhere/mount/store/a%20b/"]
        {
            assert!(base.is_directory_of(yes, path), "{yes}");
        }
        for no in ["/login", "a%20b", "/store/a%20b/", "http://lab/mount/store/a%20b/c/", "http://["] {
            assert!(!base.is_directory_of(no, path), "{no}");
        }
    }
}
