//! The text of credentials.

use std::fmt;

use crate::{
    denial::Denial,
    id::{CredentialId, KeyId, is_lower_hex},
};

/// The length of a MAC as text in bytes.
pub(crate) const MAC_TEXT_LEN: usize = 64;

/// The maximum length of a credential in bytes: the longer prefix, the largest number of a key, id and MAC.
pub(crate) const MAX_CREDENTIAL_LEN: usize = "zarrdlink_4294967295_".len() + CredentialId::TEXT_LEN + 1 + MAC_TEXT_LEN;

/// The kind of a credential. MACs of different kinds differ, so that a share link never works as a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Token,
    Link,
}

/// The text of a token or share link. It is never logged: `Debug` omits it, and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// A credential, taken apart but not verified.
#[derive(Clone, Copy)]
pub(crate) struct Credential<'t> {
    pub(crate) key: KeyId,
    pub(crate) id: CredentialId,
    /// [`MAC_TEXT_LEN`] lower-case hexadecimal digits.
    pub(crate) mac: &'t [u8],
}

impl Kind {
    /// The first characters of the credential.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Token => "zarrd_",
            Self::Link => "zarrdlink_",
        }
    }

    /// The first bytes of the message that the MAC is of.
    pub(crate) const fn domain(self) -> &'static [u8] {
        match self {
            Self::Token => b"zarrd token 1\0",
            Self::Link => b"zarrd share link 1\0",
        }
    }
}

impl<'t> Credential<'t> {
    /// Parses a credential of a kind. Every credential has one text only.
    pub(crate) fn parse(kind: Kind, text: &'t [u8]) -> Result<Self, Denial> {
        Self::parts(kind, text).ok_or(Denial::Malformed)
    }

    fn parts(kind: Kind, text: &'t [u8]) -> Option<Self> {
        if text.len() > MAX_CREDENTIAL_LEN {
            return None;
        }
        let (rest, mac) = split_end(text, MAC_TEXT_LEN)?;
        let (rest, id) = split_end(rest.strip_suffix(b"_")?, CredentialId::TEXT_LEN)?;
        let key = rest.strip_suffix(b"_")?.strip_prefix(kind.prefix().as_bytes())?;
        if !is_lower_hex(mac) {
            return None;
        }
        Some(Self { key: str::from_utf8(key).ok()?.parse().ok()?, id: CredentialId::from_digits(id)?, mac })
    }
}

impl Secret {
    pub(crate) fn new(kind: Kind, key: KeyId, id: CredentialId, mac: &str) -> Self {
        Self(format!("{}{key}_{id}_{mac}", kind.prefix()))
    }

    /// The text, to be given to its owner once.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The MAC, which is the secret key of clients that sign their requests. The access key is the id.
    pub fn secret_key(&self) -> &str {
        let at = self.0.len().saturating_sub(MAC_TEXT_LEN);
        self.0.get(at..).unwrap_or_default()
    }
}

/// Splits off the last `len` bytes.
fn split_end(text: &[u8], len: usize) -> Option<(&[u8], &[u8])> {
    text.split_at_checked(text.len().checked_sub(len)?)
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
