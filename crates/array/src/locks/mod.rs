//! The locks of the engine: none is needed for correctness, which the preconditions of commits give. They let a writer
//! that lost against others too often get through, and order changes of structure.
//!
//! - [`striped`]: read–write locks by name, for chunks, for arrays and for documents of arrays that are appended to;
//! - [`path`]: a lock on a node or a subtree, held while a change of structure is planned and committed.

pub(crate) mod path;
pub(crate) mod striped;
