//! Who asks.

use std::{fmt, str::FromStr};

use reqwest::header::HeaderValue;

/// A bearer token. It is sent to the server that a client was made for and nowhere else, and is never shown.
#[derive(Clone)]
pub struct Token {
    /// The whole value of the header, marked as sensitive.
    header: HeaderValue,
}

/// Why a text is not a [`Token`]. The text is not repeated here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is empty.
    #[error("a token has at least one character")]
    Empty,
    /// It has a character that a bearer token does not have.
    #[error("a token has letters, digits and -._~+/= only")]
    Character,
}

impl Token {
    /// Takes a token, in the alphabet of RFC 6750.
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
    fn a_token_is_never_shown() {
        let token = Token::parse("s3cret-._~+/==").unwrap();
        assert_eq!(token.header().to_str().unwrap(), "Bearer s3cret-._~+/==");
        assert!(!format!("{token:?} {:?}", token.header()).contains("s3cret"));
        assert_eq!(Token::parse("").unwrap_err(), TokenError::Empty);
        for bad in ["a b", "a\r\nX: y", "ä", "a,b"] {
            assert_eq!(Token::parse(bad).unwrap_err(), TokenError::Character, "{bad}");
        }
    }
}
