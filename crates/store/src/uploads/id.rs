//! Ids of uploads.

use std::{fmt, str::FromStr};

use crate::random::random;

/// The id of an upload: a random number of 128 bits, as text 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UploadId(u128);

/// A text that is not the id of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the id of an upload has 32 hexadecimal digits")]
pub struct UploadIdError;

impl UploadId {
    pub(super) fn random() -> Self {
        Self((u128::from(random()) << 64) | u128::from(random()))
    }
}

impl FromStr for UploadId {
    type Err = UploadIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = u128::from_str_radix(text, 16).map(Self).map_err(|_| UploadIdError)?;
        if id.to_string() == text { Ok(id) } else { Err(UploadIdError) }
    }
}

impl fmt::Display for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_one_spelling() {
        let id = UploadId::random();
        assert_eq!(id.to_string().parse(), Ok(id));
        let digits = "0123456789abcdef0123456789abcdef";
        assert!(digits.parse::<UploadId>().is_ok());
        for text in
            ["", "0", digits.trim_start_matches("0"), &digits.to_uppercase(), "+123456789abcdef0123456789abcdef"]
        {
            assert_eq!(text.parse::<UploadId>(), Err(UploadIdError), "{text:?}");
        }
    }
}
