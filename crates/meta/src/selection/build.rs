//! Selections in Rust code.

use std::ops::{Range, RangeFrom, RangeFull, RangeTo};

use super::{Item, ReadRequest, Selection, Slice};

/// Creates a [`Selection`] in a notation similar to NumPy's index, with one item per dimension.
///
/// | item | selection of its dimension |
/// |---|---|
/// | `5`, `-1` | one index; the dimension is dropped |
/// | `2..10`, `..-1`, `3..`, `..` | a slice, without its end; negative from the end |
/// | `0..10; 2`, `..; -1` | a slice with a step |
/// | `[1, 5, 9]`, or a `Vec` | these indices, in this order |
/// | `...` | all dimensions without an item |
///
/// Numbers may be of any integer type. Those that do not fit an `i64` become the nearest one that does: no array has
/// such an index, and slices are clamped, so the meaning does not change.
///
/// ```
/// use zarrd_meta::select;
///
/// assert_eq!(select![0..10, .., -1, [1, 5, 9]].to_string(), "0:10,:,-1,(1,5,9)");
/// assert_eq!(select![..; -1, 2..; 4, ..., ..-3].to_string(), "::-1,2::4,...,:-3");
/// assert_eq!(select![].to_string(), "");
/// let frame = 7_usize;
/// assert_eq!(select![frame, ...].to_string(), "7,...");
/// ```
#[macro_export]
macro_rules! select {
    (@of [$($made:expr,)*]) => {
        $crate::selection::Selection { items: ::std::vec![$($made),*] }
    };
    (@of [$($made:expr,)*] ... $(, $($rest:tt)*)?) => {
        $crate::select!(@of [$($made,)* $crate::selection::Item::Ellipsis,] $($($rest)*)?)
    };
    (@of [$($made:expr,)*] $slice:expr; $step:expr $(, $($rest:tt)*)?) => {
        $crate::select!(@of [$($made,)* $crate::selection::Item::Slice($crate::selection::Slice::from($slice).by($step)),] $($($rest)*)?)
    };
    (@of [$($made:expr,)*] $item:expr $(, $($rest:tt)*)?) => {
        $crate::select!(@of [$($made,)* $crate::selection::Item::from($item),] $($($rest)*)?)
    };
    ($($items:tt)*) => {
        $crate::select!(@of [] $($items)*)
    };
}

/// An integer of any type as an index: the nearest `i64`.
pub trait ToIndex: Copy {
    /// The index.
    fn to_index(self) -> i64;
}

macro_rules! indices {
    ($($integer:ty)*) => {
        $(
            impl ToIndex for $integer {
                fn to_index(self) -> i64 {
                    // An integer that does not fit an `i64` is above it, or below if it is negative.
                    #[allow(unused_comparisons, reason = "half of the types have no sign")]
                    let nearest = if self < 0 { i64::MIN } else { i64::MAX };
                    i64::try_from(self).unwrap_or(nearest)
                }
            }

            impl From<$integer> for Item {
                fn from(index: $integer) -> Self {
                    Self::Index(index.to_index())
                }
            }
        )*
    };
}

indices!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

impl Slice {
    /// The slice with a step, which must not be 0: [`Selection::resolve`] rejects that.
    #[must_use]
    pub fn by(self, step: impl ToIndex) -> Self {
        Self { step: Some(step.to_index()), ..self }
    }
}

impl<T: ToIndex> From<Range<T>> for Slice {
    fn from(range: Range<T>) -> Self {
        Self { start: Some(range.start.to_index()), stop: Some(range.end.to_index()), step: None }
    }
}

impl<T: ToIndex> From<RangeFrom<T>> for Slice {
    fn from(range: RangeFrom<T>) -> Self {
        Self { start: Some(range.start.to_index()), ..Self::default() }
    }
}

impl<T: ToIndex> From<RangeTo<T>> for Slice {
    fn from(range: RangeTo<T>) -> Self {
        Self { stop: Some(range.end.to_index()), ..Self::default() }
    }
}

impl From<RangeFull> for Slice {
    fn from(_: RangeFull) -> Self {
        Self::default()
    }
}

impl<T: ToIndex> From<Range<T>> for Item {
    fn from(range: Range<T>) -> Self {
        Self::Slice(range.into())
    }
}

impl<T: ToIndex> From<RangeFrom<T>> for Item {
    fn from(range: RangeFrom<T>) -> Self {
        Self::Slice(range.into())
    }
}

impl<T: ToIndex> From<RangeTo<T>> for Item {
    fn from(range: RangeTo<T>) -> Self {
        Self::Slice(range.into())
    }
}

impl From<RangeFull> for Item {
    fn from(range: RangeFull) -> Self {
        Self::Slice(range.into())
    }
}

impl From<Slice> for Item {
    fn from(slice: Slice) -> Self {
        Self::Slice(slice)
    }
}

impl<T: ToIndex> From<&[T]> for Item {
    fn from(indices: &[T]) -> Self {
        Self::List(indices.iter().map(|index| index.to_index()).collect())
    }
}

impl<T: ToIndex, const N: usize> From<[T; N]> for Item {
    fn from(indices: [T; N]) -> Self {
        Self::from(&indices[..])
    }
}

impl<T: ToIndex> From<Vec<T>> for Item {
    fn from(indices: Vec<T>) -> Self {
        Self::from(indices.as_slice())
    }
}

impl From<Selection> for ReadRequest {
    fn from(selection: Selection) -> Self {
        Self::Select(selection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_of_any_integer_type() {
        let (two, ten) = (2_u8, 10_u64);
        assert_eq!(select![two, 3_usize..12, ..ten; 5_i8, vec![1_i64, -1]].to_string(), "2,3:12,:10:5,(1,-1)");
        assert_eq!(select![u64::MAX, i128::MIN.., ..u128::MAX].to_string(), {
            format!("{},{}:,:{}", i64::MAX, i64::MIN, i64::MAX)
        });
    }

    #[test]
    fn macro_builds_every_form() {
        let step = -2;
        assert_eq!(select![1, 2..3, 4.., ..5, .., ...,].to_string(), "1,2:3,4:,:5,:,...");
        assert_eq!(select![1..2; 3, 4..; 5, ..6; 7, ..; step].to_string(), "1:2:3,4::5,:6:7,::-2");
        assert_eq!(select![[1, 2], [3; 2], &[4, 5][..]].to_string(), "(1,2),(3,3),(4,5)");
        assert_eq!(select![Slice::from(1..9), ...].to_string(), "1:9,...");
    }
}
