//! Arrays over a store: the way from a path and a selection to elements.
//!
//! [`Arrays::read`] does it all: it finds the node in whatever dialect it has, applies the selection to its shape, plans
//! which chunks are concerned, and answers with a [`Reading`], for which nothing has been decoded yet. Its [`pieces`](Reading::pieces) are the
//! elements in C order.
//!
//! - A reading sees one commit: metadata and chunks are those of one snapshot.
//! - Its memory is bounded, however large the selection is: it is assembled and yielded slab by slab.
//! - A chunk is decoded once wherever that memory allows; of uncompressed chunks and of shards only the parts are fetched that are asked for.
//! - Decoding runs on the blocking pool, several chunks at a time, and ends when the reading is dropped.

mod arrays;
mod cache;
mod context;
mod error;
mod grid;
mod hierarchy;
mod locks;
mod memory;
mod metadata;
mod node;
mod options;
mod read;
mod resolve;
mod retry;
mod work;
mod write;

pub use arrays::Arrays;
pub use error::ArrayError;
pub use hierarchy::{
    hierarchies::Hierarchies,
    intents::SettledIntents,
    members::{MAX_MEMBERS, MemberPage, Members},
    options::{
        ConversionReport, ConvertOptions, CreateAction, CreateOptions, CreateOutcome, Depth, IfExists, LinkTarget,
        LossPolicy, NodeInfo,
    },
};
pub use memory::{
    caller::{Caller, Usage},
    claim::{Claim, MemoryBudget, Permit},
    error::MemoryError,
};
pub use metadata::error::NodeError;
pub use node::broken::{Broken, BrokenNode};
pub use options::{EmptyChunks, Options};
pub use read::{
    array_read::ArrayRead,
    metrics::{ReadMetrics, ReadStats},
};
pub use write::{append::Append, error::WriteError, region::RegionWrite, report::WriteReport, source::ElementSource};
