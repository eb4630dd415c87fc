//! Writing: from a selection and its elements to chunks.
//!
//! The [reader](reader::ElementReader) receives the body in windows, consecutive parts of the region, and the
//! [layout](layout::ChunkedRegion) says which part of each chunk is in a window. Chunks that are complete in a window
//! are [encoded and staged](encode) at once, several at a time, while the next window arrives. [Parts](pending) of
//! others are pending until all elements are there, and are then [merged](merge) with what is stored. Nothing is
//! visible before one [commit] makes all of it visible.

pub(crate) mod append;
pub(crate) mod buffered;
pub(crate) mod chunk_encoder;
mod claimed;
pub(crate) mod commit;
pub(crate) mod encode;
pub(crate) mod error;
pub(crate) mod gather;
pub(crate) mod layout;
pub(crate) mod memory;
pub(crate) mod merge;
pub(crate) mod pending;
pub(crate) mod read_modify_write;
pub(crate) mod reader;
pub(crate) mod receive;
pub(crate) mod region;
mod repeated;
pub(crate) mod segments;
pub(crate) mod source;
pub(crate) mod split;
