//! The bytes of received elements, in segments.

use std::{slice, sync::Arc};

use bytes::{Bytes, BytesMut};

use crate::grid::strided::StridedCopy;

/// Bytes of elements of a fixed size, in segments of one length, of which the last may be shorter. No element is in two
/// segments. Clones share the bytes.
#[derive(Clone, Debug)]
pub(crate) enum Segments {
    /// A single one.
    One(Bytes),
    /// Several, of `length` bytes each.
    Several { segments: Arc<[Bytes]>, length: usize },
}

/// A position outside of the elements: a bug in this crate, detected before anything is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InternalError;

impl Segments {
    /// Bytes in segments of `length` bytes, of which the last may be shorter.
    pub(crate) fn new(segments: Vec<Bytes>, length: usize) -> Self {
        match <[Bytes; 1]>::try_from(segments) {
            Ok([only]) => Self::One(only),
            Err(segments) => Self::Several { segments: segments.into(), length },
        }
    }

    /// The segments, and the length of each in bytes.
    fn all(&self) -> (&[Bytes], usize) {
        match self {
            Self::One(only) => (slice::from_ref(only), only.len()),
            Self::Several { segments, length } => (segments, *length),
        }
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.all().0.iter().map(Bytes::len).sum()
    }

    /// The bytes of a range, if they are in one segment.
    pub(crate) fn contiguous(&self, start: usize, end: usize) -> Option<Bytes> {
        let (segments, length) = self.all();
        let number = start.checked_div(length).unwrap_or(0);
        let before = number.checked_mul(length)?;
        let segment = segments.get(number)?;
        let within = start.checked_sub(before)?..end.checked_sub(before)?;
        (within.start <= within.end && within.end <= segment.len()).then(|| segment.slice(within))
    }

    /// The first `len` bytes, and a copy of the others.
    pub(crate) fn split(self, len: usize) -> (Self, Bytes) {
        let (segments, length) = self.all();
        let (mut first, mut rest, mut left) = (Vec::new(), BytesMut::new(), len);
        for segment in segments {
            let of_first = left.min(segment.len());
            left = left.saturating_sub(of_first);
            if of_first > 0 {
                first.push(segment.slice(..of_first));
            }
            rest.extend_from_slice(segment.get(of_first..).unwrap_or_default());
        }
        (Self::new(first, length), rest.freeze())
    }

    /// Passes the bytes of a copy of elements of `size` bytes, segment by segment: each with the part of the copy whose
    /// elements it has, at their positions within it.
    pub(crate) fn visit(
        &self,
        copy: StridedCopy,
        size: usize,
        mut visit: impl FnMut(&[u8], StridedCopy) -> Result<(), InternalError>,
    ) -> Result<(), InternalError> {
        let (segments, length) = match self {
            Self::One(only) => return visit(only, copy),
            Self::Several { segments, length } => (segments, length),
        };
        let elements = length.checked_div(size).filter(|&elements| elements > 0).ok_or(InternalError)? as u64;
        let mut rest = copy;
        while rest.len > 0 {
            let (number, out) = (rest.out / elements, rest.out % elements);
            let fit = (elements - 1).saturating_sub(out).checked_div(rest.out_step);
            let len = fit.map_or(rest.len, |fit| fit.saturating_add(1).min(rest.len));
            let segment = usize::try_from(number).ok().and_then(|number| segments.get(number));
            visit(segment.ok_or(InternalError)?, StridedCopy { out, len, ..rest })?;
            let moved = rest.step.wrapping_mul(i64::try_from(len).map_err(|_| InternalError)?);
            rest.from = rest.from.wrapping_add_signed(moved);
            rest.out = rest.out.saturating_add(rest.out_step.saturating_mul(len));
            rest.len -= len;
        }
        Ok(())
    }
}

impl From<Bytes> for Segments {
    fn from(bytes: Bytes) -> Self {
        Self::One(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes 0, 1, 2, …, in segments.
    fn numbered(len: usize, length: usize) -> Segments {
        let bytes: Vec<u8> = (0..len).map(|number| number as u8).collect();
        Segments::new(bytes.chunks(length).map(Bytes::copy_from_slice).collect(), length)
    }

    proptest! {
        #[test]
        fn copy_has_the_elements_of_all_segments(
            size in 1_usize..4, per in 1_usize..9, out in 0_u64..40, out_step in 0_u64..7, len in 1_u64..30, step in -3_i64..4,
        ) {
            let elements = out + out_step * (len - 1) + 1;
            let segments = numbered(elements as usize * size, per * size);
            let copy = StridedCopy { from: 100, step, out, out_step, len };
            let mut found = Vec::new();
            segments
                .visit(copy, size, |bytes, part| {
                    for number in 0..part.len {
                        let at = (part.out + number * part.out_step) as usize * size;
                        let to = part.from.wrapping_add_signed(part.step * number as i64);
                        found.push((to, bytes.get(at..at + size).ok_or(InternalError)?.to_vec()));
                    }
                    Ok(())
                })
                .unwrap();
            let wanted = (0..len).map(|number| {
                let start = (out + number * out_step) as usize * size;
                let bytes: Vec<u8> = (start..start + size).map(|at| at as u8).collect();
                (100_u64.wrapping_add_signed(step * number as i64), bytes)
            });
            prop_assert_eq!(found, wanted.collect::<Vec<_>>());
        }

        #[test]
        fn parts_are_those_of_one_buffer(len in 0_usize..60, length in 1_usize..20, start in 0_usize..60, end in 0_usize..60) {
            let segments = numbered(len, length);
            let whole: Vec<u8> = (0..len).map(|number| number as u8).collect();
            prop_assert_eq!(segments.len(), len);
            if let Some(part) = segments.contiguous(start, end) {
                prop_assert_eq!(Some(&part[..]), whole.get(start..end));
            } else {
                let is_in_one = start < end && end <= len && start / length == (end - 1) / length;
                prop_assert!(!is_in_one);
            }
            let (first, rest) = segments.split(end);
            let (of_first, of_rest) = whole.split_at(end.min(len));
            prop_assert_eq!(first.len(), of_first.len());
            prop_assert_eq!(&rest[..], of_rest);
            let of_first = of_first.get(..length).unwrap_or(of_first);
            let first = first.contiguous(0, of_first.len()).unwrap_or_default();
            prop_assert_eq!(&first[..], of_first);
        }
    }

    #[test]
    fn element_that_is_missing_is_an_error() {
        let copy = StridedCopy { from: 0, step: 1, out: 3, out_step: 1, len: 9 };
        assert_eq!(numbered(8, 4).visit(copy, 1, |_, _| Ok(())), Err(InternalError));
    }
}
