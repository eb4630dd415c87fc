//! Formats of elements in bodies: [`.npy` files](npy) and [JSON](json).

use std::fmt;

pub mod json;
pub mod npy;
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
        assert_eq!(Extents::exactly(&[]).elements(), Some(1));
        assert_eq!(Extents::exactly(&[u64::MAX, 2]).elements(), None);
        assert_eq!(Extents::exactly(&[u64::MAX, 2, 0]).elements(), Some(0));
    }
}
