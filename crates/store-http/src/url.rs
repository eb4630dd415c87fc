//! URLs of web servers, with the options of a store.

use std::{fmt, str::FromStr};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;
use zarrd_store::{Key, Recheck, UrlOptionError, UrlOptions, url_options};

/// The schemes of the URLs.
pub(crate) const SCHEMES: &[&str] = &["http://", "https://"];

/// The characters of a key that are percent-encoded in a URL: all but those that never have a meaning there.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The URL below which a web server has the keys, with options: `https://example.org/data/?absent=403`. It has no
/// credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpUrl {
    /// The URL without options, whose path ends in `/`.
    base: Box<Url>,
    pub(crate) forbidden: Forbidden,
    pub(crate) redirects: Redirects,
    versions: Versions,
    /// The server is requested again after five seconds by default.
    pub(crate) options: UrlOptions,
}

/// The meaning of a 403 for a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Forbidden {
    #[default]
    Error,
    Absent,
}

/// The redirects that are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Redirects {
    /// Those within the origin.
    #[default]
    Within,
    /// Those to other origins, too.
    Follow,
}

/// The validators that versions are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Versions {
    /// Strong entity tags.
    #[default]
    ETag,
    /// The time of modification, where there is no strong entity tag.
    LastModified,
    /// Whatever the server sends, which may be nothing: the operator vouches that no value changes.
    Constant,
}

/// The reason why a text is not the URL of a store. It never repeats parts of the text that may be secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The text is not a URL of HTTP.
    #[error("the URL of a web server is `http://HOST/PATH` or `https://HOST/PATH`")]
    Invalid,
    /// The URL has a user name or a password.
    #[error("the URL of a web server has no credentials, which would be shown in logs; serve what is public")]
    Credentials,
    /// The URL has a fragment.
    #[error("the URL of a web server has no fragment (`#`); write %23 for a `#` in the path")]
    Fragment,
    /// An option is unknown, or has an unknown value.
    #[error(
        "the options of a web server are `absent=403`, `redirects=follow`, `versions=last-modified`, `recheck=5s` and `consolidated=trust`; anything else after the `?`, such as a signature, is not sent to the server"
    )]
    Option,
    /// The value of an option is invalid.
    #[error(transparent)]
    Value(#[from] UrlOptionError),
}

impl HttpUrl {
    /// The URL without options, which is the name of the store.
    pub(crate) fn base(&self) -> &str {
        self.base.as_str()
    }

    /// The validators that versions are made of. Values that are never asked for again (`recheck=never`) need none.
    pub(crate) fn versions(&self) -> Versions {
        match self.options.recheck {
            Recheck::Never => Versions::Constant,
            Recheck::Always | Recheck::After(_) => self.versions,
        }
    }

    pub(crate) fn is_https(&self) -> bool {
        self.base.scheme() == "https"
    }

    /// The path of the URL, percent-encoded.
    pub(crate) fn path(&self) -> &str {
        self.base.path()
    }

    /// The URL of a key.
    pub(crate) fn of(&self, key: &Key) -> Option<Url> {
        self.below(key.as_str())
    }

    /// The URL of a key or a prefix.
    pub(crate) fn below(&self, text: &str) -> Option<Url> {
        let path = utf8_percent_encode(text, ESCAPED);
        Url::parse(&format!("{}{path}", self.base)).ok()
    }
}

impl FromStr for HttpUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        if !SCHEMES.iter().any(|scheme| text.starts_with(scheme)) {
            return Err(UrlError::Invalid);
        }
        let mut base = Url::parse(text).map_err(|_| UrlError::Invalid)?;
        if !base.username().is_empty() || base.password().is_some() {
            return Err(UrlError::Credentials);
        }
        if base.fragment().is_some() {
            return Err(UrlError::Fragment);
        }
        let query = base.query().unwrap_or_default().to_owned();
        base.set_query(None);
        if !base.path().ends_with('/') {
            let path = format!("{}/", base.path());
            base.set_path(&path);
        }
        let mut url = Self {
            base: Box::new(base),
            forbidden: Forbidden::default(),
            redirects: Redirects::default(),
            versions: Versions::default(),
            options: UrlOptions::new(Recheck::DISTANT),
        };
        for option in url_options(&query) {
            match option {
                ("absent", "403") => url.forbidden = Forbidden::Absent,
                ("redirects", "follow") => url.redirects = Redirects::Follow,
                ("versions", "last-modified") => url.versions = Versions::LastModified,
                (name, value) if url.options.set(name, value)? => {}
                _ => return Err(UrlError::Option),
            }
        }
        Ok(url)
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let absent = (self.forbidden == Forbidden::Absent).then_some("absent=403");
        let redirects = (self.redirects == Redirects::Follow).then_some("redirects=follow");
        let versions = (self.versions == Versions::LastModified).then_some("versions=last-modified");
        let options = self.options.render([absent, redirects, versions], Recheck::DISTANT);
        let mark = if options.is_empty() { "" } else { "?" };
        write!(f, "{}{mark}{options}", self.base)
    }
}

#[cfg(test)]
mod tests {
    use zarrd_store::RecheckError;

    use super::*;

    #[test]
    fn urls_are_shown_as_they_are_parsed() {
        for (url, shown) in [
            ("http://h", "http://h/"),
            ("https://h:8443/a%20b/c?", "https://h:8443/a%20b/c/"),
            ("http://[::1]:80/a/?absent=403", "http://[::1]/a/?absent=403"),
            (
                "http://h/a?versions=last-modified&redirects=follow&absent=403",
                "http://h/a/?absent=403&redirects=follow&versions=last-modified",
            ),
            ("http://h/a?recheck=5s", "http://h/a/"),
            ("http://h/a?recheck=0s&absent=403", "http://h/a/?absent=403&recheck=0"),
            ("http://h/a?consolidated=trust&absent=403", "http://h/a/?absent=403&consolidated=trust"),
        ] {
            let parsed: HttpUrl = url.parse().unwrap();
            assert_eq!(parsed.to_string(), shown);
            assert_eq!(shown.parse(), Ok(parsed), "{url}");
        }
    }

    #[test]
    fn other_urls_are_rejected_without_repeating_secrets() {
        let secret = "hunter2";
        for (url, error) in [
            ("ftp://h/", UrlError::Invalid),
            ("http://", UrlError::Invalid),
            ("http://h:99999/", UrlError::Invalid),
            ("http://ada:hunter2@h/", UrlError::Credentials),
            ("http://hunter2@h/", UrlError::Credentials),
            ("http://:hunter2@h/", UrlError::Credentials),
            ("http://h/#hunter2", UrlError::Fragment),
            ("http://h/?X-Amz-Signature=hunter2", UrlError::Option),
            ("http://h/?absent=404", UrlError::Option),
            ("http://h/?consolidated=yes", UrlOptionError::Consolidated.into()),
            ("http://h/?absent=403&hunter2", UrlError::Option),
            ("http://h/?recheck=hunter2", UrlOptionError::from(RecheckError).into()),
        ] {
            let found = url.parse::<HttpUrl>().unwrap_err();
            assert_eq!(found, error, "{url}");
            assert!(!format!("{found} {found:?}").contains(secret), "{url}");
        }
    }

    #[test]
    fn keys_are_below_the_path_whatever_characters_they_have() {
        let url: HttpUrl = "http://h/a%2Fb?absent=403".parse().unwrap();
        for (key, expected) in [
            ("c/0/1", "http://h/a%2Fb/c/0/1"),
            ("ä b", "http://h/a%2Fb/%C3%A4%20b"),
            ("a?b#c%2e", "http://h/a%2Fb/a%3Fb%23c%252e"),
            ("%2e%2e/x", "http://h/a%2Fb/%252e%252e/x"),
            ("a\\b:c@d", "http://h/a%2Fb/a%5Cb%3Ac%40d"),
            (".zarray", "http://h/a%2Fb/.zarray"),
        ] {
            let found = url.of(&Key::parse(key).unwrap()).unwrap();
            assert_eq!(found.as_str(), expected, "{key}");
        }
    }
}
