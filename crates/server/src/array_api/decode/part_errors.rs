//! Errors of what a body has around its elements: points, and the parts of a form.

use zarrd_meta::selection::MAX_POINTS;
use zarrd_wire::elements::npz::{MAX_MEMBER_NAME, MAX_MEMBERS};

/// The longest boundary in bytes (RFC 2046, section 5.1.1).
pub(crate) const MAX_BOUNDARY: usize = 70;

/// The most bytes of the headers of a part, or before the first.
pub(crate) const MAX_HEADERS: u64 = 16 << 10;

/// Errors of the points in a body.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PointsError {
    /// The coordinates are not whole numbers.
    #[error("the points are of the type {found}, but their coordinates are whole numbers")]
    Type {
        /// Their data type.
        found: String,
    },
    /// There are no rows of coordinates.
    #[error("the points have shape {found:?}, but a row of coordinates for each point is expected")]
    Shape {
        /// Their shape.
        found: Vec<u64>,
    },
    /// There are too many points.
    #[error("there are {found} points, but {MAX_POINTS} are the most of a request")]
    TooMany {
        /// Their number.
        found: u64,
    },
    /// The body ends within the points.
    #[error("the body ends within its points, which have {expected} bytes")]
    Ended {
        /// Their length in bytes.
        expected: u64,
    },
}

/// Errors of a form.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FormError {
    /// The media type has no boundary, or one that is too long.
    #[error("multipart/form-data needs a boundary of at most {MAX_BOUNDARY} bytes")]
    Boundary,
    /// A delimiter or header is malformed, or missing at the end of the body.
    #[error("the form is malformed: {0}")]
    Malformed(#[source] multer::Error),
    /// The headers of a part are too long.
    #[error("the headers of a part of the form have more than {MAX_HEADERS} bytes")]
    Headers,
    /// A part has no name, or one that is too long.
    #[error("part {number} of the form has no name of at most {MAX_MEMBER_NAME} bytes")]
    Name {
        /// The number of the part, from 1.
        number: usize,
    },
    /// There are too many parts.
    #[error("the form has more than {MAX_MEMBERS} parts")]
    TooMany,
    /// Bytes follow the form.
    #[error("bytes follow the end of the form")]
    Trailing,
}
