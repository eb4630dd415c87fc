//! The checksum of joined parts from the checksums of the parts.

use crc_fast::checksum_combine;
use zarrd_store::{Checksum, ChecksumKind};

use crate::checksum::{crc_algorithm, crc_bytes};

/// The checksum of all bytes of some values, one after the other, from their own checksums and lengths; `None` if they
/// are not all of one CRC over all of their bytes, or if there are none. Nothing is read.
pub fn joined_checksum(parts: impl IntoIterator<Item = (Checksum, u64)>) -> Option<Checksum> {
    let mut parts = parts.into_iter();
    let (first, _) = parts.next()?;
    let algorithm = first.algorithm();
    let crc = crc_algorithm(algorithm)?;
    let mut sum = number(&first)?;
    for (part, len) in parts {
        if part.algorithm() != algorithm {
            return None;
        }
        sum = checksum_combine(crc, sum, number(&part)?, len);
    }
    Checksum::new(algorithm, ChecksumKind::FullObject, &crc_bytes(algorithm, sum)).ok()
}

/// A checksum of all bytes as a number.
fn number(checksum: &Checksum) -> Option<u64> {
    (checksum.kind() == ChecksumKind::FullObject)
        .then(|| checksum.as_bytes().iter().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zarrd_store::ChecksumAlgorithm;

    use super::*;

    const CRCS: [ChecksumAlgorithm; 3] =
        [ChecksumAlgorithm::Crc32, ChecksumAlgorithm::Crc32c, ChecksumAlgorithm::Crc64Nvme];

    /// A CRC bit by bit, from its polynomial with the least significant bit first.
    fn naive(algorithm: ChecksumAlgorithm, bytes: &[u8]) -> Checksum {
        let (bits, polynomial) = match algorithm {
            ChecksumAlgorithm::Crc32 => (32, 0xedb8_8320_u64),
            ChecksumAlgorithm::Crc32c => (32, 0x82f6_3b78),
            ChecksumAlgorithm::Crc64Nvme => (64, 0x9a6c_9329_ac4b_c9b5),
            ChecksumAlgorithm::Sha1 | ChecksumAlgorithm::Sha256 => panic!("{algorithm} is no CRC"),
        };
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
            prop_assert_eq!(joined_checksum(sums), Some(naive(algorithm, &parts.concat())));
        }
    }

    #[test]
    fn long_parts_are_joined_as_many_short_ones() {
        // 2⁴⁰ zeros, by doubling.
        for algorithm in CRCS {
            let (mut sum, mut len) = (naive(algorithm, &[0; 16]), 16_u64);
            while len < 1 << 40 {
                sum = joined_checksum([(sum, len), (sum, len)]).unwrap();
                len *= 2;
            }
            let half = joined_checksum([(naive(algorithm, b"a"), 1), (sum, len)]).unwrap();
            assert_ne!(half, sum);
        }
    }

    #[test]
    fn only_equal_crcs_of_whole_values_are_joined() {
        let [crc, other] = [ChecksumAlgorithm::Crc32, ChecksumAlgorithm::Crc32c].map(|it| naive(it, b"a"));
        let sha = Checksum::new(ChecksumAlgorithm::Sha1, ChecksumKind::FullObject, &[0; 20]).unwrap();
        let composite = Checksum::new(ChecksumAlgorithm::Crc32, ChecksumKind::Composite { parts: 2 }, &[0; 4]).unwrap();
        for parts in [vec![], vec![sha], vec![sha, sha], vec![crc, other], vec![crc, composite]] {
            assert_eq!(joined_checksum(parts.iter().map(|part| (*part, 1))), None, "{parts:?}");
        }
    }
}
