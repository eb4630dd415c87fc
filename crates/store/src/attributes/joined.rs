//! The checksum of joined parts from the checksums of the parts.

use super::{Checksum, ChecksumAlgorithm, ChecksumKind};

/// A CRC whose bits are reflected and whose initial and final values are ones.
#[derive(Clone, Copy)]
struct Crc {
    bits: u32,
    /// The polynomial, least significant bit first.
    polynomial: u64,
}

impl Checksum {
    /// The checksum of all bytes of some values, one after the other, from their own checksums and lengths; `None` if
    /// they are not all of one CRC over all of their bytes, or if there are none. Nothing is read.
    pub fn joined(parts: impl IntoIterator<Item = (Self, u64)>) -> Option<Self> {
        let mut parts = parts.into_iter();
        let (first, _) = parts.next()?;
        let crc = Crc::of(first.algorithm())?;
        let mut sum = number(&first)?;
        for (part, len) in parts {
            if part.algorithm() != first.algorithm() {
                return None;
            }
            sum = crc.joined(sum, number(&part)?, len);
        }
        let bytes = sum.to_be_bytes();
        let value = bytes.get(bytes.len().checked_sub(first.algorithm().bytes())?..)?;
        Self::new(first.algorithm(), ChecksumKind::FullObject, value).ok()
    }
}

/// A checksum of all bytes as a number.
fn number(checksum: &Checksum) -> Option<u64> {
    (checksum.kind() == ChecksumKind::FullObject)
        .then(|| checksum.as_bytes().iter().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
}

impl Crc {
    fn of(algorithm: ChecksumAlgorithm) -> Option<Self> {
        let (bits, polynomial) = match algorithm {
            ChecksumAlgorithm::Crc32 => (32, 0xedb8_8320),
            ChecksumAlgorithm::Crc32c => (32, 0x82f6_3b78),
            ChecksumAlgorithm::Crc64Nvme => (64, 0x9a6c_9329_ac4b_c9b5),
            ChecksumAlgorithm::Sha1 | ChecksumAlgorithm::Sha256 => return None,
        };
        Some(Self { bits, polynomial })
    }

    /// The CRC of bytes that are followed by `len` others. The first CRC is multiplied by x to the power of the number of
    /// bits that follow.
    fn joined(self, first: u64, second: u64, mut len: u64) -> u64 {
        let (mut power, mut shift) = (self.one(), self.one() >> 8);
        while len > 0 {
            if len & 1 == 1 {
                power = self.product(shift, power);
            }
            shift = self.product(shift, shift);
            len >>= 1;
        }
        self.product(power, first) ^ second
    }

    /// The polynomial 1: its bit is the most significant one.
    fn one(self) -> u64 {
        1 << (self.bits - 1)
    }

    /// The product of two polynomials modulo the polynomial of the CRC.
    fn product(self, one: u64, mut other: u64) -> u64 {
        let (mut product, mut bit) = (0, self.one());
        while bit > 0 {
            if one & bit != 0 {
                product ^= other;
            }
            other = (other >> 1) ^ if other & 1 == 1 { self.polynomial } else { 0 };
            bit >>= 1;
        }
        product
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CRCS: [ChecksumAlgorithm; 3] =
        [ChecksumAlgorithm::Crc32, ChecksumAlgorithm::Crc32c, ChecksumAlgorithm::Crc64Nvme];

    fn naive(algorithm: ChecksumAlgorithm, bytes: &[u8]) -> Checksum {
        let Crc { bits, polynomial } = Crc::of(algorithm).unwrap();
        let ones = u64::MAX >> (64 - bits);
        let mut sum = ones;
        for byte in bytes {
            sum ^= u64::from(*byte);
            for _ in 0..8 {
                sum = (sum >> 1) ^ if sum & 1 == 1 { polynomial } else { 0 };
            }
        }
        let sum = (sum ^ ones).to_be_bytes();
        Checksum::new(algorithm, ChecksumKind::FullObject, &sum[8 - algorithm.bytes()..]).unwrap()
    }

    #[test]
    fn the_naive_checksums_are_those_of_the_standards() {
        let hex = |algorithm| {
            naive(algorithm, b"123456789").as_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        assert_eq!(CRCS.map(hex), ["cbf43926", "e3069283", "ae8b14860a799888"]);
    }

    proptest! {
        #[test]
        fn joined_checksums_are_those_of_the_joined_bytes(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..6),
            algorithm in prop::sample::select(&CRCS),
        ) {
            let sums = parts.iter().map(|part| (naive(algorithm, part), part.len() as u64));
            prop_assert_eq!(Checksum::joined(sums), Some(naive(algorithm, &parts.concat())));
        }
    }

    #[test]
    fn long_parts_are_joined_as_many_short_ones() {
        // 2⁴⁰ zeros, by doubling.
        for algorithm in CRCS {
            let (mut sum, mut len) = (naive(algorithm, &[0; 16]), 16_u64);
            while len < 1 << 40 {
                sum = Checksum::joined([(sum, len), (sum, len)]).unwrap();
                len *= 2;
            }
            let half = Checksum::joined([(naive(algorithm, b"a"), 1), (sum, len)]).unwrap();
            assert_ne!(half, sum);
        }
    }

    #[test]
    fn only_equal_crcs_of_whole_values_are_joined() {
        let [crc, other] = [ChecksumAlgorithm::Crc32, ChecksumAlgorithm::Crc32c].map(|it| naive(it, b"a"));
        let sha = Checksum::new(ChecksumAlgorithm::Sha1, ChecksumKind::FullObject, &[0; 20]).unwrap();
        let composite = Checksum::new(ChecksumAlgorithm::Crc32, ChecksumKind::Composite { parts: 2 }, &[0; 4]).unwrap();
        for parts in [vec![], vec![sha], vec![sha, sha], vec![crc, other], vec![crc, composite]] {
            assert_eq!(Checksum::joined(parts.iter().map(|part| (*part, 1))), None, "{parts:?}");
        }
    }
}
