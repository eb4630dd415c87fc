//! Coordinates of dimensions, and selections by their labels.
//!
//! The coordinate of a dimension is the one-dimensional array of its name over it, in the group of the array or in the
//! nearest group above; any other one-dimensional array over one of the dimensions can be named as well. Arrays that the
//! request may not read are passed over as if they did not exist.

pub(crate) mod error;
pub(crate) mod find;
pub(crate) mod read;
pub(crate) mod select;
