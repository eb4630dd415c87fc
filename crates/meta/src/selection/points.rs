//! Single elements by their coordinates.

use super::{SelectionError, resolve::resolve_index};

/// Elements of an array by their coordinates, which are within its shape. The result has the shape `[len]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Points {
    /// The number of points, which does not follow from the coordinates if the rank is 0.
    pub len: usize,
    /// The number of coordinates of each point.
    pub rank: usize,
    /// The coordinates, point by point: `len * rank` of them.
    pub coordinates: Vec<u64>,
}

impl Points {
    /// Resolves points against a shape; negative coordinates count from the end.
    pub fn resolve(points: &[Vec<i64>], shape: &[u64]) -> Result<Self, SelectionError> {
        let rank = shape.len();
        // Not more than the points have, whatever the rank of the array is.
        let mut coordinates = Vec::with_capacity(points.iter().map(Vec::len).sum());
        for (point, point_coordinates) in points.iter().enumerate() {
            let invalid = |source| SelectionError::Point { point, source: Box::new(source) };
            if point_coordinates.len() != rank {
                return Err(invalid(SelectionError::PointRank { found: point_coordinates.len(), rank }));
            }
            for (dimension, (&index, &extent)) in point_coordinates.iter().zip(shape).enumerate() {
                coordinates.push(resolve_index(index, dimension, extent).map_err(invalid)?);
            }
        }
        Ok(Self { len: points.len(), rank, coordinates })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_coordinates_count_from_the_end() {
        let points = Points::resolve(&[vec![0, -1], vec![-5, 2]], &[5, 3]).unwrap();
        assert_eq!(points, Points { len: 2, rank: 2, coordinates: vec![0, 2, 0, 2] });
        let points = Points::resolve(&[vec![], vec![], vec![]], &[]).unwrap();
        assert_eq!(points, Points { len: 3, rank: 0, coordinates: vec![] });
        assert_eq!(Points::resolve(&[], &[5, 3]).unwrap().len, 0);
    }

    #[test]
    fn invalid_points_are_named() {
        for (points, expected) in [
            (vec![vec![0, 0], vec![0]], "point 1: 1 coordinates for an array of 2 dimensions"),
            (vec![vec![0, 0], vec![4, 3]], "point 1: index 3 is out of bounds for dimension 1, whose bounds are -3..3"),
            (vec![vec![-6, 0]], "point 0: index -6 is out of bounds for dimension 0, whose bounds are -5..5"),
        ] {
            assert_eq!(Points::resolve(&points, &[5, 3]).unwrap_err().to_string(), expected);
        }
    }
}
