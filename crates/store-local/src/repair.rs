//! Repair of single flipped bits, which checksums prove.

/// The number of bytes up to which each bit is tried: each attempt computes a checksum of all of them.
pub(crate) const MAX_REPAIRED_BYTES: usize = 64 << 10;

/// Finds the one bit among the first `tried` bytes whose flipping makes the bytes valid, flips it, and returns true.
/// Returns false, with the bytes unchanged, if no bit does, or if there are too many bytes.
pub(crate) fn repair_bit(bytes: &mut [u8], tried: usize, is_valid: impl Fn(&[u8]) -> bool) -> bool {
    if bytes.len() > MAX_REPAIRED_BYTES {
        return false;
    }
    for at in 0..bytes.len().min(tried) {
        for bit in 0..8_u8 {
            flip(bytes, at, bit);
            if is_valid(bytes) {
                return true;
            }
            flip(bytes, at, bit);
        }
    }
    false
}

fn flip(bytes: &mut [u8], at: usize, bit: u8) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << bit;
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    #[test]
    fn one_flipped_bit_is_repaired_and_two_are_not() {
        let sound: Vec<u8> = (0..200).collect();
        let sum = xxh3_64(&sound);
        let is_valid = |bytes: &[u8]| xxh3_64(bytes) == sum;
        for at in [0, 77, 199] {
            let mut damaged = sound.clone();
            damaged[at] ^= 8;
            assert!(repair_bit(&mut damaged, 200, is_valid));
            assert_eq!(damaged, sound);
        }
        let mut damaged = sound.clone();
        damaged[3] ^= 1;
        damaged[9] ^= 1;
        let before = damaged.clone();
        assert!(!repair_bit(&mut damaged, 200, is_valid));
        assert_eq!(damaged, before);
        let mut long = vec![0; MAX_REPAIRED_BYTES + 1];
        assert!(!repair_bit(&mut long, 1, |_| true));
    }
}
