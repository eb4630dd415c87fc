//! Checksums of values, as clients of S3 send them.

use std::{fmt, str::FromStr};

use super::{AttributesError, MAX_PARTS};

/// The maximum length of a checksum, in bytes.
const MAX_LEN: usize = 32;

/// A checksum of a value's bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Checksum {
    algorithm: ChecksumAlgorithm,
    kind: ChecksumKind,
    /// The bytes, followed by zeros.
    bytes: [u8; MAX_LEN],
}

/// The algorithm of a [`Checksum`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChecksumAlgorithm {
    /// CRC-32 of zip and Ethernet.
    Crc32,
    /// CRC-32C (Castagnoli).
    Crc32c,
    /// CRC-64/NVME.
    Crc64Nvme,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
}

/// The bytes that a [`Checksum`] is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChecksumKind {
    /// All bytes of the value.
    FullObject,
    /// The checksums of the parts that the value was made of, one after the other.
    Composite {
        /// The number of parts.
        parts: u32,
    },
}

impl Checksum {
    /// A checksum with these bytes, most significant first.
    pub fn new(algorithm: ChecksumAlgorithm, kind: ChecksumKind, value: &[u8]) -> Result<Self, AttributesError> {
        let (expected, found) = (algorithm.bytes(), value.len());
        if matches!(kind, ChecksumKind::Composite { parts } if parts == 0 || parts > MAX_PARTS) {
            return Err(AttributesError::ChecksumParts);
        }
        let mut bytes = [0; MAX_LEN];
        match bytes.get_mut(..found).filter(|_| expected == found) {
            Some(target) => target.copy_from_slice(value),
            None => return Err(AttributesError::ChecksumLength { algorithm, expected, found }),
        }
        Ok(Self { algorithm, kind, bytes })
    }

    /// The algorithm.
    pub fn algorithm(&self) -> ChecksumAlgorithm {
        self.algorithm
    }

    /// The bytes that it is of.
    pub fn kind(&self) -> ChecksumKind {
        self.kind
    }

    /// The checksum's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.algorithm.bytes()).unwrap_or_default()
    }
}

impl ChecksumAlgorithm {
    /// All algorithms.
    pub const ALL: [Self; 5] = [Self::Crc32, Self::Crc32c, Self::Crc64Nvme, Self::Sha1, Self::Sha256];

    /// The length of a checksum, in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Crc32 | Self::Crc32c => 4,
            Self::Crc64Nvme => 8,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    /// The name, as in the headers of S3 (`x-amz-checksum-crc32c`).
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Crc32 => "crc32",
            Self::Crc32c => "crc32c",
            Self::Crc64Nvme => "crc64nvme",
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }
}

/// A text that is not the name of a [`ChecksumAlgorithm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an unknown checksum algorithm")]
pub struct UnknownAlgorithm;

impl FromStr for ChecksumAlgorithm {
    type Err = UnknownAlgorithm;

    /// Parses a name in any case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(text)).ok_or(UnknownAlgorithm)
    }
}

impl fmt::Display for ChecksumAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} ", self.algorithm, self.kind)?;
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_have_the_length_of_their_algorithm() {
        for algorithm in ChecksumAlgorithm::ALL {
            let bytes: Vec<u8> = (1..=40).collect();
            for len in 0..=40 {
                let made = Checksum::new(algorithm, ChecksumKind::FullObject, &bytes[..len]);
                assert_eq!(made.is_ok(), len == algorithm.bytes(), "{algorithm} {len}");
                assert!(made.is_err() || made.unwrap().as_bytes() == &bytes[..len]);
            }
            assert_eq!(algorithm.as_str().to_uppercase().parse(), Ok(algorithm));
        }
        for parts in [0, MAX_PARTS + 1] {
            let made = Checksum::new(ChecksumAlgorithm::Crc32, ChecksumKind::Composite { parts }, &[0; 4]);
            assert_eq!(made, Err(AttributesError::ChecksumParts));
        }
    }
}
