//! Byte ranges.

use std::ops::Range;

/// A byte range of a value, as in the partial reads of the Zarr specification and in an HTTP `Range`.
///
/// It is independent of a value's size; [`ByteRange::resolve`] applies it to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteRange {
    /// From `start`, inclusive, to `end`, exclusive; never empty.
    Bounded {
        /// The first byte.
        start: u64,
        /// The byte after the last one.
        end: u64,
    },
    /// From this byte to the end.
    From(u64),
    /// The last bytes, at least one.
    Last(u64),
}

/// The range contains no byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a byte range has at least one byte")]
pub struct ByteRangeError;

impl ByteRange {
    /// The bytes `start..end`. Fails if they are empty.
    pub fn bounded(start: u64, end: u64) -> Result<Self, ByteRangeError> {
        if start < end { Ok(Self::Bounded { start, end }) } else { Err(ByteRangeError) }
    }

    /// The last `count` bytes. Fails if `count` is 0.
    pub fn last(count: u64) -> Result<Self, ByteRangeError> {
        if count > 0 { Ok(Self::Last(count)) } else { Err(ByteRangeError) }
    }

    /// The bytes of the range in a value of `size` bytes; `None` if it has none.
    ///
    /// An end past the value's end is clipped. A suffix longer than the value is the complete value, even an empty one.
    /// A start at or past the end contains nothing.
    pub fn resolve(self, size: u64) -> Option<Range<u64>> {
        match self {
            Self::Bounded { start, end } if start < size => Some(start..end.min(size)),
            Self::From(start) if start < size => Some(start..size),
            Self::Last(count) => Some(size.saturating_sub(count)..size),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges() {
        assert_eq!(ByteRange::bounded(3, 3), Err(ByteRangeError));
        assert_eq!(ByteRange::last(0), Err(ByteRangeError));
        let bounded = |start, end| ByteRange::bounded(start, end).unwrap();
        assert_eq!(bounded(0, 4).resolve(10), Some(0..4));
        assert_eq!(bounded(9, u64::MAX).resolve(10), Some(9..10));
        assert_eq!(bounded(10, 11).resolve(10), None);
        assert_eq!(bounded(0, 1).resolve(0), None);
        assert_eq!(ByteRange::From(9).resolve(10), Some(9..10));
        assert_eq!(ByteRange::From(10).resolve(10), None);
        assert_eq!(ByteRange::Last(3).resolve(10), Some(7..10));
        assert_eq!(ByteRange::Last(11).resolve(10), Some(0..10));
        assert_eq!(ByteRange::Last(1).resolve(0), Some(0..0));
    }
}
