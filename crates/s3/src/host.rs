//! The names of hosts: path style and virtual-host style.

use std::{fmt, str::FromStr};

use http::uri::Authority;

/// The domain below which names of hosts begin with a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain(String);

/// The text is not a [`Domain`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a domain, such as s3.example.org")]
pub struct DomainError {
    /// The invalid text.
    pub text: String,
}

impl Domain {
    /// True if a `Host` header names the domain, or a name below it.
    pub fn covers(&self, host: &str) -> bool {
        let name = without_port(host);
        name.eq_ignore_ascii_case(&self.0) || self.bucket(host).is_some()
    }

    /// The bucket that a `Host` header names; `None` if it names another host, or the domain itself.
    pub fn bucket<'h>(&self, host: &'h str) -> Option<&'h str> {
        let name = without_port(host);
        let at = name.len().checked_sub(self.0.len())?;
        let (bucket, domain) = (name.get(..at)?, name.get(at..)?);
        domain.eq_ignore_ascii_case(&self.0).then(|| bucket.strip_suffix('.')).flatten().filter(|name| !name.is_empty())
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Domain {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<Self, DomainError> {
        let error = || DomainError { text: text.to_owned() };
        let is_label = |label: &str| {
            !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        };
        if text.parse::<Authority>().is_err() || !text.split('.').all(is_label) {
            return Err(error());
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_below_the_domain_have_a_bucket() {
        let domain: Domain = "S3.example.org".parse().unwrap();
        for (host, bucket) in [
            ("lab.s3.example.org", Some("lab")),
            ("Lab.S3.EXAMPLE.org:9000", Some("Lab")),
            ("a.b.s3.example.org", Some("a.b")),
            ("s3.example.org", None),
            (".s3.example.org", None),
            ("labs3.example.org", None),
            ("other.example.org", None),
            ("127.0.0.1:9000", None),
            ("[::1]:9000", None),
            ("é.example.org", None),
        ] {
            assert_eq!(domain.bucket(host), bucket, "{host}");
        }
        assert!(domain.covers("s3.example.org:1") && domain.covers("lab.s3.example.org"));
        assert!(!domain.covers("evil.example.org") && !domain.covers("xs3.example.org"));
        for bad in ["", "a..b", ".a", "a.", "a/b", "a b", "a:80", "u@a", "[::1]"] {
            assert!(bad.parse::<Domain>().is_err(), "{bad}");
        }
    }
}
