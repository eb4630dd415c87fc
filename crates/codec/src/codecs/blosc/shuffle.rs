//! Shuffling of bytes and bits, and its inverse.
//!
//! Shuffled bytes are in planes: the first bytes of all elements, then their second bytes, and so on; bytes after the
//! last complete element are unchanged. Shuffled bits divide each of these planes into eight, lowest bits first; the
//! first of eight elements has the lowest bit of a byte.
//!
//! Elements are assembled by doubling: planes of bytes to pairs, pairs to fours, and so on, a few hundred elements at a
//! time. The compiler vectorizes each step, unlike gathering all bytes of an element at once: 13 instead of 4.7 GB/s
//! for 8-byte elements.

use std::{array, iter::zip};

/// The number of elements per pass, so that intermediate results stay in the first-level cache.
const ELEMENTS_PER_PASS: usize = 256;

/// Unshuffles the bytes of elements of `size` bytes. Both slices have the same length.
pub(super) fn unshuffle(size: usize, planes: &[u8], elements: &mut [u8]) {
    let count = elements.len().checked_div(size).unwrap_or(0);
    let complete_len = count.saturating_mul(size);
    let (Some((planes, rest)), Some((elements, end))) =
        (planes.split_at_checked(complete_len), elements.split_at_mut_checked(complete_len))
    else {
        return;
    };
    end.copy_from_slice(rest);
    match size {
        0 => {}
        1 => elements.copy_from_slice(planes),
        2 => join_planes(planes, elements, join_2),
        4 => join_planes(planes, elements, join_4),
        8 => join_planes(planes, elements, join_8),
        16 => join_planes(planes, elements, join_16),
        _ => {
            for (byte_index, plane) in planes.chunks_exact(count.max(1)).enumerate() {
                let targets = elements.iter_mut().skip(byte_index).step_by(size);
                zip(targets, plane).for_each(|(to, from)| *to = *from);
            }
        }
    }
}

/// Shuffles the bytes of elements of `size` bytes. Both slices have the same length.
pub(super) fn shuffle(size: usize, elements: &[u8], planes: &mut [u8]) {
    let count = elements.len().checked_div(size).unwrap_or(0);
    let complete_len = count.saturating_mul(size);
    let (Some((elements, rest)), Some((planes, end))) =
        (elements.split_at_checked(complete_len), planes.split_at_mut_checked(complete_len))
    else {
        return;
    };
    end.copy_from_slice(rest);
    for (byte_index, plane) in planes.chunks_exact_mut(count.max(1)).enumerate() {
        let targets = elements.iter().skip(byte_index).step_by(size.max(1));
        zip(plane, targets).for_each(|(to, from)| *to = *from);
    }
}

/// Unshuffles the bits of elements of `size` bytes. All slices have the same length; `planes` is scratch space.
pub(super) fn unshuffle_bits(size: usize, bits: &[u8], planes: &mut [u8], elements: &mut [u8]) {
    let Some(shuffled_len) = shuffled_bits(size, elements.len()) else {
        elements.copy_from_slice(bits);
        return;
    };
    let count = shuffled_len / size;
    let (Some((rows, rest)), Some((joined, end))) =
        (bits.split_at_checked(shuffled_len), planes.split_at_mut_checked(shuffled_len))
    else {
        return;
    };
    end.copy_from_slice(rest);
    for (rows, plane) in zip(rows.chunks_exact(count), joined.chunks_exact_mut(count)) {
        join_planes(rows, plane, join_8);
        transpose_bits(plane);
    }
    unshuffle(size, planes, elements);
}

/// Shuffles the bits of elements of `size` bytes. All slices have the same length; `planes` is scratch space.
pub(super) fn shuffle_bits(size: usize, elements: &[u8], planes: &mut [u8], bits: &mut [u8]) {
    let Some(shuffled_len) = shuffled_bits(size, elements.len()) else {
        bits.copy_from_slice(elements);
        return;
    };
    let count = shuffled_len / size;
    shuffle(size, elements, planes);
    let (Some((planes, rest)), Some((rows, end))) =
        (planes.split_at_mut_checked(shuffled_len), bits.split_at_mut_checked(shuffled_len))
    else {
        return;
    };
    end.copy_from_slice(rest);
    for (plane, rows) in zip(planes.chunks_exact_mut(count), rows.chunks_exact_mut(count)) {
        transpose_bits(plane);
        shuffle(8, plane, rows);
    }
}

/// The number of bytes of a block whose bits are shuffled: all complete elements if their number is a multiple of
/// eight, otherwise none.
fn shuffled_bits(size: usize, len: usize) -> Option<usize> {
    let count = len.checked_div(size)?;
    (count > 0 && count.is_multiple_of(8)).then(|| count.saturating_mul(size))
}

/// Transposes each 8 × 8 matrix of bits; its own inverse.
fn transpose_bits(plane: &mut [u8]) {
    for bytes in plane.as_chunks_mut::<8>().0 {
        let mut bits = u64::from_le_bytes(*bytes);
        for (mask, shift) in [(0x00aa_00aa_00aa_00aa, 7), (0x0000_cccc_0000_cccc, 14), (0x0000_0000_f0f0_f0f0, 28)] {
            let moved = (bits ^ (bits >> shift)) & mask;
            bits ^= moved ^ (moved << shift);
        }
        *bytes = bits.to_le_bytes();
    }
}

/// Assembles elements from their planes, pass by pass.
fn join_planes<const N: usize>(planes: &[u8], elements: &mut [u8], join_pass: impl Fn([&[u8]; N], &mut [[u8; N]])) {
    let elements = elements.as_chunks_mut::<N>().0;
    let mut planes = planes.chunks_exact(elements.len().max(1));
    let mut planes: [_; N] = array::from_fn(|_| planes.next().unwrap_or_default().chunks(ELEMENTS_PER_PASS));
    for elements in elements.chunks_mut(ELEMENTS_PER_PASS) {
        join_pass(planes.each_mut().map(|plane| plane.next().unwrap_or_default()), elements);
    }
}

fn join_16(planes: [&[u8]; 16], elements: &mut [[u8; 16]]) {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = planes;
    let (mut first, mut second) = ([[0; 8]; ELEMENTS_PER_PASS], [[0; 8]; ELEMENTS_PER_PASS]);
    join_8([a, b, c, d, e, f, g, h], &mut first);
    join_8([i, j, k, l, m, n, o, p], &mut second);
    interleave(&first, &second, elements);
}

fn join_8(planes: [&[u8]; 8], elements: &mut [[u8; 8]]) {
    let [a, b, c, d, e, f, g, h] = planes;
    let (mut first, mut second) = ([[0; 4]; ELEMENTS_PER_PASS], [[0; 4]; ELEMENTS_PER_PASS]);
    join_4([a, b, c, d], &mut first);
    join_4([e, f, g, h], &mut second);
    interleave(&first, &second, elements);
}

fn join_4(planes: [&[u8]; 4], elements: &mut [[u8; 4]]) {
    let [a, b, c, d] = planes;
    let (mut first, mut second) = ([[0; 2]; ELEMENTS_PER_PASS], [[0; 2]; ELEMENTS_PER_PASS]);
    join_2([a, b], &mut first);
    join_2([c, d], &mut second);
    interleave(&first, &second, elements);
}

fn join_2(planes: [&[u8]; 2], elements: &mut [[u8; 2]]) {
    let [a, b] = planes;
    interleave(a.as_chunks::<1>().0, b.as_chunks::<1>().0, elements);
}

/// Concatenates each part of `first` with the one of `second`, up to the end of the shortest slice.
fn interleave<const HALF: usize, const WHOLE: usize>(
    first: &[[u8; HALF]],
    second: &[[u8; HALF]],
    wholes: &mut [[u8; WHOLE]],
) {
    for ((whole, first), second) in wholes.iter_mut().zip(first).zip(second) {
        if let Some((start, end)) = whole.split_at_mut_checked(HALF) {
            start.copy_from_slice(first);
            end.copy_from_slice(second);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shuffle_moves_bytes_and_bits_into_planes() {
        let elements: Vec<u8> = (0..16).collect();
        let mut planes = vec![0; 16];
        shuffle(2, &elements, &mut planes);
        assert_eq!(planes, [0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15]);
        let (mut between, mut bits) = (vec![0; 16], vec![0; 16]);
        shuffle_bits(2, &elements, &mut between, &mut bits);
        // The lowest bit of the low bytes 0, 2, … 14 is never set, the next one is set in every second byte, and so on.
        assert_eq!(bits, [0, 0xaa, 0xcc, 0xf0, 0, 0, 0, 0, 0xff, 0xaa, 0xcc, 0xf0, 0, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn byte_shuffle_roundtrips(size in 1..40_usize, elements in prop::collection::vec(any::<u8>(), 0..6000)) {
            let mut planes = vec![0; elements.len()];
            let mut back = vec![0; elements.len()];
            shuffle(size, &elements, &mut planes);
            let complete_len = elements.len() / size * size;
            for (byte_index, byte) in elements[..complete_len].iter().enumerate() {
                prop_assert_eq!(planes[byte_index % size * (complete_len / size) + byte_index / size], *byte);
            }
            unshuffle(size, &planes, &mut back);
            prop_assert_eq!(&back, &elements);
        }

        #[test]
        fn bit_shuffle_roundtrips(size in 1..20_usize, count in 0..300_usize, rest in 0..20_usize, seed in any::<u64>()) {
            let len = size * count + rest % size;
            let elements: Vec<u8> = (0..len as u64).map(|at| (at.wrapping_mul(seed | 1) >> 23) as u8).collect();
            let (mut planes, mut bits, mut back) = (vec![0; len], vec![0; len], vec![0; len]);
            shuffle_bits(size, &elements, &mut planes, &mut bits);
            if count % 8 == 0 {
                for element in 0..count {
                    for bit in 0..size * 8 {
                        let expected = elements[element * size + bit / 8] >> (bit % 8) & 1;
                        prop_assert_eq!(bits[bit * count / 8 + element / 8] >> (element % 8) & 1, expected);
                    }
                }
            } else {
                prop_assert_eq!(&bits, &elements);
            }
            unshuffle_bits(size, &bits, &mut planes, &mut back);
            prop_assert_eq!(&back, &elements);
        }
    }
}
