//! Credentials in requests.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, header::AUTHORIZATION};

/// The maximum length of an `Authorization` header, in bytes.
const MAX_HEADER_LEN: usize = 1024;

/// A credential of a request.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credential {
    pub(super) scheme: Scheme,
    /// The token.
    pub(super) token: String,
}

/// An authentication scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// `Bearer` (RFC 6750).
    Bearer,
    /// `Basic` (RFC 7617) with any user name and the token as the password. Browsers send it by themselves.
    Basic,
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
pub(super) fn from_headers(headers: &HeaderMap) -> Result<Option<Credential>, CredentialError> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    if lines.next().is_some() {
        return Err(CredentialError::Duplicate);
    }
    if line.len() > MAX_HEADER_LEN {
        return Err(CredentialError::TooLong);
    }
    let text = line.to_str().map_err(|_| CredentialError::Malformed)?;
    let (scheme, rest) = text.split_once(' ').unwrap_or((text, ""));
    let rest = rest.trim_matches(' ');
    if scheme.eq_ignore_ascii_case("bearer") {
        return Ok(Some(Credential { scheme: Scheme::Bearer, token: rest.to_owned() }));
    }
    if scheme.eq_ignore_ascii_case("basic") {
        return password(rest).map(|token| Some(Credential { scheme: Scheme::Basic, token }));
    }
    Err(CredentialError::Scheme)
}

/// The password in the credentials of `Basic`.
fn password(encoded: &str) -> Result<String, CredentialError> {
    let decoded = STANDARD.decode(encoded).map_err(|_| CredentialError::Malformed)?;
    let text = String::from_utf8(decoded).map_err(|_| CredentialError::Malformed)?;
    text.split_once(':').map(|(_, password)| password.to_owned()).ok_or(CredentialError::Malformed)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn parse(lines: &[&str]) -> Result<Option<(Scheme, String)>, CredentialError> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(AUTHORIZATION, HeaderValue::from_str(line).unwrap());
        }
        Ok(from_headers(&headers)?.map(|Credential { scheme, token }| (scheme, token)))
    }

    #[test]
    fn tokens_are_read_from_both_schemes() {
        assert_eq!(parse(&[]), Ok(None));
        for line in ["Bearer t_1", "bearer  t_1", "BEARER t_1 "] {
            assert_eq!(parse(&[line]), Ok(Some((Scheme::Bearer, "t_1".to_owned()))), "{line}");
        }
        for user in ["", "user", "t_2"] {
            let line = format!("Basic {}", STANDARD.encode(format!("{user}:t_1")));
            assert_eq!(parse(&[&line]), Ok(Some((Scheme::Basic, "t_1".to_owned()))), "{user}");
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
        let not_utf8 = format!("Basic {}", STANDARD.encode(b"u:\xff"));
        for line in ["Basic", "Basic !", "Basic dTp", &no_colon, &not_utf8] {
            assert_eq!(parse(&[line]), Err(CredentialError::Malformed), "{line}");
        }
    }
}
