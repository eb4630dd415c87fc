//! URLs of buckets.

use std::{fmt, str::FromStr};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use zarrd_store::{KeyError, Prefix, Recheck, UrlOptionError, UrlOptions, url_options};

use crate::options::WriteMode;

/// The characters of a prefix that are percent-encoded in a URL.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b'?').add(b'#');

/// The services, by the schemes of their URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// `s3`: Amazon S3, and what speaks its protocol.
    S3,
    /// `gs`: Google Cloud Storage.
    Google,
    /// `az`: Azure Blob Storage.
    Azure,
}

/// The URL of a bucket or of a prefix in it, with options: `s3://bucket/prefix?absent=403&recheck=5s`. It has no
/// credentials.
///
/// With `writes=yes` it is served for writing too, if the service checks conditions of writes, and with `writes=last-wins`
/// even if it does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketUrl {
    pub(crate) location: Location,
    pub(crate) forbidden: Forbidden,
    pub(crate) writes: WriteMode,
    /// The bucket is requested again after five seconds by default.
    pub(crate) options: UrlOptions,
}

/// A prefix in a bucket: the part of the URL before its options. It has no credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) service: Service,
    pub(crate) bucket: String,
    pub(crate) prefix: Prefix,
}

/// The meaning of a 403 for a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Forbidden {
    #[default]
    Error,
    Absent,
}

/// The reason why a text is not the URL of a bucket. It never repeats parts of the text that may be secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The scheme is missing or unknown.
    #[error("the URL of a bucket begins with `s3://`, `gs://` or `az://`")]
    Scheme,
    /// The URL has a user name or a password.
    #[error(
        "the URL of a bucket has no credentials: they are taken from the environment, in the variables AWS_*, GOOGLE_* or AZURE_*"
    )]
    Credentials,
    /// The name of the bucket is missing or has characters that no name has.
    #[error("the URL does not name a bucket, which has letters, digits, `-`, `_` and `.` only")]
    Bucket,
    /// The path is not a prefix of keys.
    #[error("the path in the bucket is not a prefix of keys")]
    Prefix(#[from] KeyError),
    /// An option is unknown.
    #[error(
        "the option {option:?} is unknown; there are `writes=yes`, `writes=last-wins`, `absent=403`, `recheck=5s` and `consolidated=trust`, joined by `&`"
    )]
    UnknownOption {
        /// The name of the option.
        option: String,
    },
    /// The value of an option is invalid.
    #[error("the option `absent` has the value `403` only: keys that the service refuses to show have no value then")]
    Absent,
    /// The value of an option is invalid.
    #[error("the option `writes` has the values `yes`, `last-wins` if writes need no conditions, and `no`")]
    Writes,
    /// The value of an option is invalid.
    #[error(transparent)]
    Option(#[from] UrlOptionError),
}

impl Service {
    const ALL: [Self; 3] = [Self::S3, Self::Google, Self::Azure];

    pub(crate) const fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Google => "gs",
            Self::Azure => "az",
        }
    }

    /// The way to name the region or account that a bucket is in.
    pub(crate) const fn variables(self) -> &'static str {
        match self {
            Self::S3 => "AWS_*",
            Self::Google => "GOOGLE_*",
            Self::Azure => "AZURE_*",
        }
    }

    /// The variables with an endpoint, and that which allows one without encryption.
    pub(crate) const fn endpoints(self) -> (&'static [&'static str], &'static str) {
        match self {
            Self::S3 => (&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"], "AWS_ALLOW_HTTP"),
            Self::Google => (&["GOOGLE_BASE_URL"], "GOOGLE_ALLOW_HTTP"),
            Self::Azure => (&["AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"], "AZURE_ALLOW_HTTP"),
        }
    }
}

impl FromStr for BucketUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        let service = Service::ALL.into_iter().find(|service| service.scheme() == scheme).ok_or(UrlError::Scheme)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.contains('@') {
            return Err(UrlError::Credentials);
        }
        let is_named = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'$');
        if bucket.is_empty() || bucket.starts_with('.') || !bucket.bytes().all(is_named) {
            return Err(UrlError::Bucket);
        }
        let location = Location { service, bucket: bucket.to_owned(), prefix: parse_prefix(path)? };
        let options = UrlOptions::new(Recheck::DISTANT);
        let mut parsed = Self { location, forbidden: Forbidden::default(), writes: WriteMode::default(), options };
        for option in url_options(query) {
            match option {
                ("absent", "403") => parsed.forbidden = Forbidden::Absent,
                ("absent", _) => return Err(UrlError::Absent),
                ("writes", "yes") => parsed.writes = WriteMode::Conditional,
                ("writes", "last-wins") => parsed.writes = WriteMode::LastWins,
                ("writes", "no") => parsed.writes = WriteMode::ReadOnly,
                ("writes", _) => return Err(UrlError::Writes),
                (name, value) if parsed.options.set(name, value)? => {}
                (other, _) => return Err(UrlError::UnknownOption { option: other.chars().take(40).collect() }),
            }
        }
        Ok(parsed)
    }
}

impl fmt::Display for BucketUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = utf8_percent_encode(self.location.prefix.as_str(), ESCAPED);
        write!(f, "{}://{}/{prefix}", self.location.service.scheme(), self.location.bucket)?;
        let absent = (self.forbidden == Forbidden::Absent).then_some("absent=403");
        let writes = match self.writes {
            WriteMode::ReadOnly => None,
            WriteMode::Conditional => Some("writes=yes"),
            WriteMode::LastWins => Some("writes=last-wins"),
        };
        let options = self.options.render([absent, writes], Recheck::DISTANT);
        let mark = if options.is_empty() { "" } else { "?" };
        write!(f, "{mark}{options}")
    }
}

fn parse_prefix(path: &str) -> Result<Prefix, UrlError> {
    let decoded: Vec<u8> = percent_decode_str(path).collect();
    let mut bytes = decoded;
    if !bytes.is_empty() && bytes.last() != Some(&b'/') {
        bytes.push(b'/');
    }
    Ok(Prefix::from_bytes(&bytes)?)
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}/{}", self.service.scheme(), self.bucket, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use zarrd_store::RecheckError;

    use super::*;

    #[test]
    fn urls_are_shown_as_they_are_parsed() {
        for url in [
            "s3://b/",
            "gs://b/a%20b/%3Fc/",
            "az://$web/a/100%25/?absent=403",
            "s3://b/?recheck=never",
            "s3://b/?absent=403&recheck=0",
            "s3://b/?recheck=1s&consolidated=trust",
            "s3://b/?writes=yes",
            "az://b/?absent=403&writes=last-wins&recheck=0",
        ] {
            let parsed: BucketUrl = url.parse().unwrap();
            assert_eq!(parsed.to_string(), url);
        }
        for (url, recheck) in [("s3://b", Recheck::DISTANT), ("s3://b?absent=403&recheck=0", Recheck::Always)] {
            assert_eq!(url.parse::<BucketUrl>().unwrap().options.recheck, recheck, "{url}");
        }
    }

    #[test]
    fn urls_name_a_prefix_in_a_bucket() {
        for (url, shown) in [
            ("s3://b", "s3://b/"),
            ("s3://b/", "s3://b/"),
            ("gs://b_1.x/a", "gs://b_1.x/a/"),
            ("az://$web/a/b/", "az://$web/a/b/"),
            ("s3://b/a%20b/%C3%A4?", "s3://b/a b/ä/"),
        ] {
            let BucketUrl { location, forbidden, .. } = url.parse().unwrap();
            assert_eq!((location.to_string().as_str(), forbidden), (shown, Forbidden::Error), "{url}");
        }
        let BucketUrl { location, forbidden, .. } = "s3://b/a?absent=403".parse().unwrap();
        assert_eq!((location.to_string().as_str(), forbidden), ("s3://b/a/", Forbidden::Absent));
    }

    #[test]
    fn other_urls_are_rejected_without_repeating_secrets() {
        let secret = "hunter2";
        for (url, expected) in [
            ("/data", UrlError::Scheme),
            ("s4://b", UrlError::Scheme),
            ("s3:b", UrlError::Scheme),
            ("s3://", UrlError::Bucket),
            ("s3:///a", UrlError::Bucket),
            ("s3://b:80/a", UrlError::Bucket),
            ("s3://b#hunter2", UrlError::Bucket),
            ("s3://..", UrlError::Bucket),
            ("s3://key:hunter2@b/a", UrlError::Credentials),
            ("s3://b/a//b", UrlError::Prefix(KeyError::EmptySegment { offset: 2 })),
            ("s3://b/../a", UrlError::Prefix(KeyError::DotSegment { offset: 0 })),
            ("s3://b/%FF", UrlError::Prefix(KeyError::NotUtf8 { offset: 0 })),
            ("s3://b?absent=404", UrlError::Absent),
            ("s3://b?absent", UrlError::Absent),
            ("s3://b?writes=hunter2", UrlError::Writes),
            ("s3://b?writes", UrlError::Writes),
            ("s3://b?consolidated=hunter2", UrlOptionError::Consolidated.into()),
            ("s3://b?recheck=hunter2", UrlOptionError::from(RecheckError).into()),
            ("s3://b?token=hunter2", UrlError::UnknownOption { option: "token".to_owned() }),
        ] {
            let error = url.parse::<BucketUrl>().unwrap_err();
            assert_eq!(error, expected, "{url}");
            assert!(!format!("{error} {error:?}").contains(secret), "{url}");
        }
        let error = "s3://b?presence=1".parse::<BucketUrl>().unwrap_err();
        assert!(error.to_string().contains("absent=403"), "{error}");
    }
}
