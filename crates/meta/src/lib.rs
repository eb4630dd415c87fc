//! Zarr metadata as values, without I/O: documents of three dialects and their common model.
//!
//! ```text
//!   zarr.json │ .zarray + .zattrs │ draft: meta/root/…      stored documents (bytes)
//!        │              ▲
//!        │ documents    │ documents::write, documents::patch
//!        ▼              │
//!   ArrayModel, GroupModel  ──── convert ────►  documents of another dialect, and the losses
//!        │              ▲
//!        │ zom          │ zom::Zom::parse
//!        ▼              │
//!   Zarr Object Model (ZEP 6)                               JSON of requests and responses
//! ```
//!
//! The dialects are Zarr [v2](https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html),
//! [v3](https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html), and the [2020 draft of
//! v3](https://zarr-specs.readthedocs.io/en/core-protocol-v3.0-dev/protocol/core/v3.0.html). All crates above this one
//! work with an [`ArrayModel`], whatever the dialect of its document is.
//!
//! # Concepts
//!
//! - [`documents`] validates a document and reads it into a model, which keeps the document: edits change only the
//!   bytes of the edited members, and unknown members are preserved ([`json::Json`]).
//! - [`data_type`] defines the elements of arrays and their notations; [`codecs`] has the configurations of codecs,
//!   which the crate `codec` implements; [`extensions`] are those of ZEP 10; [`grid`] and [`chunk_keys`] locate chunks.
//! - [`convert`] translates between dialects and lists what is lost. [`zom`] is the structure of a hierarchy in one
//!   JSON text.
//! - [`relation`] compares the documents that v2 and v3 have at one path.
//! - [`selection`] parses selections and resolves them against a shape.
//!
//! Documents and requests are untrusted: everything that they declare is checked against [`limits`] before it is
//! allocated or looped over.

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
pub mod ome;
mod path;
pub mod relation;
pub mod selection;
mod text;
pub mod zom;

pub use dialect::{Dialect, DialectError};
pub use model::{ArrayModel, BoundedTimes};
pub use path::{NodePath, PathError};
