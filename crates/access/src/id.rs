//! Ids of tokens, share links and keys.

use std::{fmt, str::FromStr};

use rand::{
    TryRng,
    rngs::{SysError, SysRng},
};
use serde::{Deserialize, Serialize};

/// The id of a token or share link: 128 random bits, shown as 32 lower-case hexadecimal digits. It is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CredentialId([u8; 16]);

/// The number of a key of the key ring, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct KeyId(u32);

/// The text is not an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The id of a token or share link has another form.
    #[error("an id has 32 lower-case hexadecimal digits")]
    Credential,
    /// The number of a key has another form.
    #[error("a key is a number from 1 to 4294967295, without leading zeros")]
    Key,
}

impl CredentialId {
    /// The length of the text form in bytes.
    pub(crate) const TEXT_LEN: usize = 32;

    /// A new id, from the system's random numbers.
    pub(crate) fn random() -> Result<Self, SysError> {
        let mut bytes = [0; 16];
        SysRng.try_fill_bytes(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Parses the text form.
    pub(crate) fn from_digits(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; 16];
        if text.len() != Self::TEXT_LEN || !is_lower_hex(text) {
            return None;
        }
        // The value of a digit, which is known to be one.
        let value = |digit: u8| (digit & 0x0f) + 9 * (digit >> 6);
        let (pairs, _) = text.as_chunks();
        for (byte, &[high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = (value(high) << 4) | value(low);
        }
        Some(Self(bytes))
    }

    /// The id as a number.
    pub fn to_u128(self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    /// The bytes.
    pub(crate) fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl KeyId {
    /// The number of the first key.
    pub(crate) const FIRST: Self = Self(1);

    /// The next number; `None` after the last one.
    pub(crate) fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

/// True if a text has nothing but lower-case hexadecimal digits. Since upper-case ones are not accepted, two different
/// texts never mean the same.
pub(crate) fn is_lower_hex(text: &[u8]) -> bool {
    // Without branches, which the compiler turns into a few instructions for many bytes.
    text.iter().fold(true, |hex, byte| hex & ((byte.wrapping_sub(b'0') < 10) | (byte.wrapping_sub(b'a') < 6)))
}

impl fmt::Display for CredentialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; Self::TEXT_LEN];
        hex::encode_to_slice(self.0, &mut digits).map_err(|_| fmt::Error)?;
        f.write_str(str::from_utf8(&digits).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for CredentialId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::from_digits(text.as_bytes()).ok_or(IdError::Credential)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for KeyId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let is_canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        if !is_canonical {
            return Err(IdError::Key);
        }
        text.parse().map(Self).map_err(|_| IdError::Key)
    }
}

impl TryFrom<String> for CredentialId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<CredentialId> for String {
    fn from(id: CredentialId) -> Self {
        id.to_string()
    }
}

impl TryFrom<u32> for KeyId {
    type Error = IdError;

    fn try_from(number: u32) -> Result<Self, IdError> {
        if number == 0 { Err(IdError::Key) } else { Ok(Self(number)) }
    }
}

impl From<KeyId> for u32 {
    fn from(id: KeyId) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_has_one_text() {
        let id = CredentialId::random().unwrap();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_ne!(CredentialId::random().unwrap(), id);
        let text = "0123456789abcdef0123456789abcdef";
        assert_eq!(text.parse::<CredentialId>().unwrap().to_string(), text);
        assert_eq!(text.parse::<CredentialId>().unwrap().to_u128(), 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
        for byte in 0..=u8::MAX {
            let is_digit = byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            assert_eq!(is_lower_hex(&[byte]), is_digit, "{byte}");
            assert_eq!(format!("{byte:02x}").repeat(16).parse(), Ok(CredentialId([byte; 16])));
        }
        for bad in [
            "",
            text.get(1..).unwrap(),
            &text.to_uppercase(),
            &format!("{text}0"),
            &text.replace('0', "g"),
            &text.replace("01", "é"),
        ] {
            assert_eq!(bad.parse::<CredentialId>(), Err(IdError::Credential), "{bad}");
        }
        assert_eq!("4294967295".parse(), Ok(KeyId(u32::MAX)));
        assert_eq!((KeyId::FIRST.next(), KeyId(u32::MAX).next()), (Some(KeyId(2)), None));
        for bad in ["", "0", "01", "+1", "-1", " 1", "1 ", "4294967296", "99999999999999999999", "x"] {
            assert_eq!(bad.parse::<KeyId>(), Err(IdError::Key), "{bad}");
        }
    }
}
