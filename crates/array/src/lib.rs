//! Arrays over a store: the engine that reads, writes and organises them.
//!
//! # Reading
//!
//! [`Arrays::read`] resolves the node at a path, whatever its dialect, resolves the selection against its shape, and
//! plans which chunks are touched. It returns an [`ArrayRead`], for which nothing is decoded yet; its
//! [stream](ArrayRead::into_stream) yields the elements in C order.
//!
//! - A read sees one commit: metadata and chunks are of one snapshot.
//! - Its memory is bounded, however large the selection is: elements are assembled and returned slab by slab.
//! - A chunk is decoded once if memory allows. Of uncompressed chunks and of shards only the selected parts are
//!   fetched.
//! - Decoding runs on threads of the [executor](zarrd_executor), several chunks at a time, and ends when the read is dropped.
//!
//! # Writing
//!
//! [`Arrays::write`] plans a write of a region, and [`Arrays::append`] one that grows the array. All elements become
//! visible in one commit, or none. Concurrent writers of one chunk both succeed: the later one re-encodes the chunk on
//! top of the other's. [`Arrays::append_dataset`] appends to all arrays of a group over a dimension, in one commit.
//!
//! # Structure
//!
//! [`Hierarchies`] reads and changes nodes: it describes them as the Zarr Object Model, creates and replaces trees,
//! changes metadata, converts between dialects and erases. Changes are planned without locks on the versions of the
//! documents that were read (the read set), and committed on condition that these are current.
//!
//! # Modules
//!
//! Arrows point one way: `error`, `options`, `purpose` ← `memory`, `locks`, `cache`, `running_decodes`, `node` ← `context` ← `resolve`
//! ← `metadata` ← `growth`, `read` ← `write` ← `hierarchy`, `chunk_map` ← `map`, `dataset` ← `reduce` ← `result` ← `arrays`.

mod arrays;
mod buffer_pool;
mod cache;
mod chunk_map;
mod context;
mod convention;
mod coordinate_cache;
mod coordinates;
mod dataset;
mod datetimes;
mod error;
mod grid;
mod growth;
mod hierarchy;
mod listing_states;
mod locks;
mod map;
mod memory;
mod metadata;
mod node;
mod options;
mod purpose;
mod read;
mod reduce;
mod resolve;
mod result;
mod result_cache;
mod retry;
mod rights;
mod running_decodes;
mod shared_slice;
mod unavailable_mounts;
mod work;
mod write;

pub use arrays::Arrays;
pub use chunk_map::{BinAxis, ChunkBins, ChunkEntry, ChunkMap, MAX_BINS};
pub use coordinates::{
    error::CoordinateError,
    read::CoordinateVersion,
    select::{
        DimensionCoordinate, Indices, LabelledDimension, Labels, NamedSelection, Selected, hash_versions, label_means,
    },
};
pub use dataset::{
    append::DatasetAppend,
    error::{DatasetError, DiscontinuousLabel},
};
pub use error::ArrayError;
pub use hierarchy::{
    create_array::ArrayCreation,
    hierarchies::Hierarchies,
    intents::SettledIntents,
    members::{FileListing, MAX_MEMBERS, MemberPage, Members},
    options::{CreateAction, CreateOptions, CreateOutcome, DescribedNode},
    undecoded::undecoded,
};
pub use map::{Decode, ElementMap};
pub use memory::{
    claim::{Claim, MemoryBudget, Permit},
    error::MemoryError,
};
pub use metadata::{
    copy_update::RemovedCopies,
    error::{NodeError, OtherArrays},
};
pub use node::{broken::Broken, counterpart::DialectsDiffer};
pub use options::{EmptyChunks, Options};
pub use purpose::{Purpose, VersionSource};
pub use read::{
    array_read::ArrayRead,
    cost::{ReadCost, StoredCost},
    metrics::{ReadMetrics, ReadStats},
};
pub use reduce::{
    request::ReduceRequest,
    statistics::{StatisticsOf, StatisticsRead},
};
pub use result::ArrayResult;
pub use rights::NodeRights;
pub use write::{append::Append, error::WriteError, region::RegionWrite, source::ElementSource};
pub use zarrd_executor::{Caller, Usage};
pub use zarrd_operations::{
    AppendReport, BrokenNode, ConversionReport, ConvertOptions, Depth, ExistingDocuments, IfExists, LinkTarget,
    LossPolicy, NodeInfo, NodeRejection, PatchMode, WriteReport,
};
