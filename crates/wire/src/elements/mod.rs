//! Formats of elements in bodies: [`.npy` files](npy), [archives of them](npz) and [JSON](json).

use std::fmt;

pub mod json;
pub mod npy;
pub mod npz;
mod python;

/// The shape that elements must have. Along the dimension in which they are appended, if there is one, they may have
/// any extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extents(Vec<Option<u64>>);

impl Extents {
    /// This shape and no other.
    pub fn exactly(shape: &[u64]) -> Self {
        Self(shape.iter().copied().map(Some).collect())
    }

    /// A shape with one dimension of any extent.
    pub fn open(shape: &[u64], dimension: usize) -> Self {
        let extent = |(index, &extent)| (index != dimension).then_some(extent);
        Self(shape.iter().enumerate().map(extent).collect())
    }

    /// The dimensions; `None` is the one with any extent.
    pub fn dimensions(&self) -> &[Option<u64>] {
        &self.0
    }

    /// True if it accepts a shape.
    pub fn fit(&self, shape: &[u64]) -> bool {
        let fits = |(extent, found): (&Option<u64>, &u64)| extent.is_none_or(|extent| extent == *found);
        self.0.len() == shape.len() && self.0.iter().zip(shape).all(fits)
    }

    /// The shape with as many dimensions as these, which it has but for dimensions of extent 1 at its beginning; `None` if
    /// these do not accept it.
    pub fn aligned(&self, shape: &[u64]) -> Option<Vec<u64>> {
        let rank = self.0.len();
        let (added, kept) = match shape.len().checked_sub(rank) {
            Some(more) => {
                let (ones, kept) = shape.split_at_checked(more)?;
                (0, Some(kept).filter(|_| ones.iter().all(|extent| *extent == 1))?)
            }
            None => (rank - shape.len(), shape),
        };
        let aligned: Vec<u64> = std::iter::repeat_n(1, added).chain(kept.iter().copied()).collect();
        self.fit(&aligned).then_some(aligned)
    }

    /// The last dimensions, if the others accept an extent of 1.
    pub fn without_leading_ones(&self, rank: usize) -> Option<Self> {
        let (ones, kept) = self.0.split_at_checked(self.0.len().checked_sub(rank)?)?;
        ones.iter().all(|extent| extent.is_none_or(|extent| extent == 1)).then(|| Self(kept.to_vec()))
    }

    /// True if one dimension may have any extent.
    pub fn is_open(&self) -> bool {
        self.0.contains(&None)
    }

    /// The number of elements; of an open shape, for each index of its dimension. `None` if it exceeds a `u64`.
    pub fn elements(&self) -> Option<u64> {
        elements(self.0.iter().copied().flatten())
    }
}

/// The number of elements of a shape; `None` if it exceeds a `u64`.
pub(crate) fn elements(extents: impl Iterator<Item = u64> + Clone) -> Option<u64> {
    if extents.clone().any(|extent| extent == 0) {
        return Some(0);
    }
    extents.into_iter().try_fold(1_u64, u64::checked_mul)
}

impl fmt::Display for Extents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, extent) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            match extent {
                Some(extent) => write!(f, "{extent}")?,
                None => f.write_str("any")?,
            }
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_accept_matching_shapes() {
        let exact = Extents::exactly(&[2, 3]);
        assert!(exact.fit(&[2, 3]) && !exact.fit(&[2]) && !exact.fit(&[3, 2]) && !exact.fit(&[2, 3, 1]));
        assert_eq!((exact.to_string().as_str(), exact.elements(), exact.is_open()), ("[2, 3]", Some(6), false));
        let open = Extents::open(&[2, 3], 0);
        assert!(open.fit(&[7, 3]) && open.fit(&[0, 3]) && !open.fit(&[2, 4]) && !open.fit(&[3]));
        assert_eq!((open.to_string().as_str(), open.elements(), open.is_open()), ("[any, 3]", Some(3), true));
        assert_eq!(exact.aligned(&[1, 1, 2, 3]), Some(vec![2, 3]));
        assert_eq!((exact.aligned(&[3]), exact.aligned(&[2, 1, 3])), (None, None));
        let row = Extents::exactly(&[1, 3]);
        assert_eq!((row.aligned(&[3]), row.aligned(&[1]), row.aligned(&[])), (Some(vec![1, 3]), None, None));
        assert_eq!((open.aligned(&[3]), open.aligned(&[1, 7, 3])), (Some(vec![1, 3]), Some(vec![7, 3])));
        assert_eq!(Extents::open(&[2, 3], 1).aligned(&[2]), None, "a column is no row");
        assert_eq!(row.without_leading_ones(1), Some(Extents::exactly(&[3])));
        assert_eq!(open.without_leading_ones(1), Some(Extents::exactly(&[3])));
        assert_eq!((exact.without_leading_ones(1), row.without_leading_ones(3)), (None, None));
        assert_eq!(Extents::exactly(&[]).elements(), Some(1));
        assert_eq!(Extents::exactly(&[u64::MAX, 2]).elements(), None);
        assert_eq!(Extents::exactly(&[u64::MAX, 2, 0]).elements(), Some(0));
    }
}
