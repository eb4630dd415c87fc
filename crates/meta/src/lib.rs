//! Zarr metadata as pure values: the documents of three dialects, and the one model that they are read into.
//!
//! Everything above this crate sees an [`ArrayModel`], whatever wrote the array: Zarr
//! [v2](https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html),
//! [v3](https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html), or the
//! [2020 draft of v3](https://zarr-specs.readthedocs.io/en/core-protocol-v3.0-dev/protocol/core/v3.0.html). Nothing here does I/O.
//!
//! Documents come from strangers. Whatever they declare is bounded by [`limits`] before it is allocated or looped over.

pub mod chunk_keys;
pub mod codecs;
pub mod convert;
pub mod data_type;
mod dialect;
pub mod documents;
pub mod extensions;
pub mod grid;
pub mod json;
pub mod limits;
mod model;
pub mod names;
mod path;
pub mod selection;
mod text;
pub mod zom;

pub use dialect::{Dialect, DialectError};
pub use model::ArrayModel;
pub use path::{NodePath, PathError};
