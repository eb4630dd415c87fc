//! Coordinates of dimensions, and selections by their labels.
//!
//! The coordinate of a dimension is the one-dimensional array of its name over it, in the group of the array or in the
//! nearest group above; any other one-dimensional array over one of the dimensions can be named as well. Arrays that the
//! request may not read are passed over as if they did not exist. A level of an image of OME-Zarr is also selected by the
//! coordinates that the transformations of the image say.

pub(crate) mod error;
pub(crate) mod find;
pub(crate) mod image;
pub(crate) mod read;
pub(crate) mod select;
