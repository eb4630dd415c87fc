//! Where a server is.

use std::{fmt, str::FromStr};

use reqwest::Url;

/// Where a server is: `http(s)://host[:port][/mount]`, parsed once.
///
/// Everything that the client asks for lies below it, and nothing is ever asked of another host.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct BaseUrl {
    url: Url,
    /// The URL as text, without a `/` at its end, so that a target that begins with `/` can follow.
    text: String,
}

/// Why a text is not a [`BaseUrl`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaseUrlError {
    /// It is not a URL.
    #[error("this is not a URL: {reason}")]
    NotAUrl {
        /// What is wrong with it.
        reason: String,
    },
    /// It is neither `http` nor `https`.
    #[error("the scheme is http or https, not {scheme}")]
    Scheme {
        /// The scheme that was given.
        scheme: String,
    },
    /// It has a user name or password. They are not repeated here.
    #[error("the URL of a server has no user name or password; give a token as an option")]
    Credentials,
    /// It has a query.
    #[error("the URL of a server has no query")]
    Query,
    /// It has a fragment.
    #[error("the URL of a server has no fragment")]
    Fragment,
    /// Its path has an empty segment.
    #[error("the path in the URL of a server has no empty segment")]
    EmptySegment,
}

impl BaseUrl {
    /// Parses a URL. One `/` at its end is the same as none.
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
        let mount = url.path().trim_end_matches('/').to_owned();
        url.set_path(&mount);
        let text = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self { url, text })
    }

    /// The URL as text, without a `/` at its end.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The URL of a target: a percent-encoded path that begins with `/`, perhaps with a query.
    pub(crate) fn target(&self, target: &str) -> String {
        format!("{}{target}", self.text)
    }

    /// True if `location`, as a redirection to it gave it, is `path` of this server with a `/` behind.
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
    fn a_server_and_perhaps_a_mount() {
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
    fn nothing_else() {
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
    fn a_redirection_to_the_directory_of_the_same_name() {
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
