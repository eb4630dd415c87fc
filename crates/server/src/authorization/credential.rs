//! Credentials in requests.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, header::AUTHORIZATION};

/// The maximum length of an `Authorization` header, in bytes.
const MAX_HEADER_LEN: usize = 1024;

/// A credential of a request.
pub(super) struct Credential<'h> {
    pub(super) scheme: Scheme,
    /// The token.
    pub(super) token: Cow<'h, [u8]>,
}

/// An authentication scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// `Bearer` (RFC 6750).
    Bearer,
    /// `Basic` (RFC 7617) with any user name and the token as the password. Browsers send it by themselves.
    Basic,
    /// A signature, version 4 of Amazon's. Only who has the key, or a URL that was made with it, can send it.
    Signature,
}

/// The reason why a header has no credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CredentialError {
    /// The header occurs more than once.
    #[error("Authorization occurs more than once")]
    Duplicate,
    /// The header is too long for a token.
    #[error("Authorization is longer than {MAX_HEADER_LEN} bytes")]
    TooLong,
    /// The scheme is unknown.
    #[error("the scheme of Authorization is neither Bearer nor Basic")]
    Scheme,
    /// The header is malformed.
    #[error("Authorization is malformed")]
    Malformed,
}

/// Returns the credential in the headers, if any.
pub(super) fn from_headers(headers: &HeaderMap) -> Result<Option<Credential<'_>>, CredentialError> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    if lines.next().is_some() {
        return Err(CredentialError::Duplicate);
    }
    if line.len() > MAX_HEADER_LEN {
        return Err(CredentialError::TooLong);
    }
    let text = line.as_bytes();
    if let Some(token) = after_scheme(text, b"Bearer") {
        return Ok(Some(Credential { scheme: Scheme::Bearer, token: token.into() }));
    }
    if let Some(encoded) = after_scheme(text, b"Basic") {
        return password(encoded).map(|token| Some(Credential { scheme: Scheme::Basic, token: token.into() }));
    }
    Err(CredentialError::Scheme)
}

/// The text after a scheme, if a header has this one.
fn after_scheme<'h>(text: &'h [u8], scheme: &[u8]) -> Option<&'h [u8]> {
    let (name, rest) = text.split_at_checked(scheme.len())?;
    let is_scheme = name.eq_ignore_ascii_case(scheme) && (rest.is_empty() || rest.starts_with(b" "));
    is_scheme.then(|| without_spaces(rest))
}

/// Removes spaces at both ends.
fn without_spaces(mut text: &[u8]) -> &[u8] {
    while let Some(rest) = text.strip_prefix(b" ").or_else(|| text.strip_suffix(b" ")) {
        text = rest;
    }
    text
}

/// The password in the credentials of `Basic`.
fn password(encoded: &[u8]) -> Result<Vec<u8>, CredentialError> {
    let decoded = STANDARD.decode(encoded).map_err(|_| CredentialError::Malformed)?;
    let mut parts = decoded.splitn(2, |byte| *byte == b':');
    parts.nth(1).map(<[u8]>::to_vec).ok_or(CredentialError::Malformed)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn parse(lines: &[&str]) -> Result<Option<(Scheme, Vec<u8>)>, CredentialError> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(AUTHORIZATION, HeaderValue::from_str(line).unwrap());
        }
        Ok(from_headers(&headers)?.map(|Credential { scheme, token }| (scheme, token.into_owned())))
    }

    #[test]
    fn tokens_are_read_from_both_schemes() {
        assert_eq!(parse(&[]), Ok(None));
        for line in ["Bearer t_1", "bearer  t_1", "BEARER t_1 "] {
            assert_eq!(parse(&[line]), Ok(Some((Scheme::Bearer, b"t_1".to_vec()))), "{line}");
        }
        let not_text = format!("Basic {}", STANDARD.encode(b"\xfe:\xff:"));
        assert_eq!(parse(&[&not_text]), Ok(Some((Scheme::Basic, b"\xff:".to_vec()))));
        for user in ["", "user", "t_2"] {
            let line = format!("Basic {}", STANDARD.encode(format!("{user}:t_1")));
            assert_eq!(parse(&[&line]), Ok(Some((Scheme::Basic, b"t_1".to_vec()))), "{user}");
        }
    }

    #[test]
    fn malformed_headers_are_rejected() {
        assert_eq!(parse(&["Bearer a", "Bearer a"]), Err(CredentialError::Duplicate));
        assert_eq!(parse(&[&format!("Bearer {}", "a".repeat(2000))]), Err(CredentialError::TooLong));
        for line in ["", "Digest a", "Bearer, Basic", "t_1", "AWS4-HMAC-SHA256 Credential=x", "Bearertoken"] {
            assert_eq!(parse(&[line]), Err(CredentialError::Scheme), "{line}");
        }
        let no_colon = format!("Basic {}", STANDARD.encode("token"));
        for line in ["Basic", "Basic !", "Basic dTp", &no_colon] {
            assert_eq!(parse(&[line]), Err(CredentialError::Malformed), "{line}");
        }
    }
}
