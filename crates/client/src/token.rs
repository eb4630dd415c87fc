//! Bearer tokens.

use std::{fmt, str::FromStr};

use reqwest::header::HeaderValue;

/// A bearer token. It is sent only to the server of the client, and never logged or printed.
#[derive(Clone)]
pub struct Token {
    /// The complete header value, marked as sensitive.
    header: HeaderValue,
}

/// Errors of parsing a [`Token`]. Messages do not repeat the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The token is empty.
    #[error("the token is empty")]
    Empty,
    /// The token has a character that is not allowed in bearer tokens.
    #[error("the token contains a character other than letters, digits and -._~+/=")]
    Character,
}

impl Token {
    /// Parses a token in the alphabet of RFC 6750.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        if text.is_empty() {
            return Err(TokenError::Empty);
        }
        if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)) {
            return Err(TokenError::Character);
        }
        let mut header = HeaderValue::from_str(&format!("Bearer {text}")).map_err(|_| TokenError::Character)?;
        header.set_sensitive(true);
        Ok(Self { header })
    }

    pub(crate) fn header(&self) -> HeaderValue {
        self.header.clone()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_never_printed() {
        let token = Token::parse("s3cret-._~+/==").unwrap();
        assert_eq!(token.header().to_str().unwrap(), "Bearer s3cret-._~+/==");
        assert!(!format!("{token:?} {:?}", token.header()).contains("s3cret"));
        assert_eq!(Token::parse("").unwrap_err(), TokenError::Empty);
        for bad in ["a b", "a\r\nX: y", "ä", "a,b"] {
            assert_eq!(Token::parse(bad).unwrap_err(), TokenError::Character, "{bad}");
        }
    }
}
