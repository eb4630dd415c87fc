//! Options and results of operations on nodes and arrays.
//!
//! The array engine performs these operations, the HTTP contract transports them, and the client requests them. All
//! three use the same types:
//!
//! ```text
//!   array engine ──► operations ◄── HTTP contract (wire) ◄── client
//!                        │
//!                  meta, store (values only)
//! ```
//!
//! [`node`] describes nodes as of one commit, [`create`] and [`convert`] have the options of changes of whole
//! hierarchies, [`write`](mod@write) the result of writing elements, and [`rejection`] the reasons why a change of a
//! node is rejected. There is no logic here and no I/O.

pub mod convert;
pub mod create;
pub mod node;
pub mod patch;
pub mod rejection;
pub mod write;

pub use convert::{ConversionReport, ConvertOptions, ExistingDocuments};
pub use create::{IfExists, LossPolicy};
pub use node::{BrokenNode, Depth, LinkTarget, NodeInfo};
pub use patch::PatchMode;
pub use rejection::NodeRejection;
pub use write::{AppendReport, WriteReport};
