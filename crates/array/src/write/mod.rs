//! Writing elements: the way from a selection and its elements to chunks.
//!
//! The way of an element: [`intake`] gathers what comes into windows, parts of the region that follow each other; the [`layout`] says what each window has of each chunk.
//! Chunks that are whole in a window are [made](target) at once, several at a time, while the next window comes. [Parts](kept) of others wait until everything is there, and are
//! then [merged](merge) with what is stored. Nothing is visible before all of it is, in one [`commit`].

pub(crate) mod append;
pub(crate) mod chunk_encoder;
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
pub(crate) mod report;
pub(crate) mod source;
