//! Reductions of elements: sums, means, extremes and other functions of groups, without I/O.
//!
//! A [`ReductionRequest`] becomes a [`Reduction`] for an [`Input`]: a data type and the extents of a selection. The
//! reduction has the shape and type of its result. Each dimension of the input has [`Windows`], and every combination
//! of windows is a *group*, whose elements are reduced to one result: a dimension that is kept has windows of one
//! element, and one that is reduced a window of all.
//!
//! ```text
//! ReductionRequest ─ Input ─▶ Reduction ─▶ Partial ◀─ elements of chunks, in any order
//!                                │           │ merge
//!                                └─ finish ◀─┘
//! ```
//!
//! Elements are added to [`Partial`] results chunk by chunk. Several of them may be computed side by side; they are
//! merged at the end. Only these states are in memory, never the elements.
//!
//! **Results are the same bits** whatever the chunks, their order and the number of partial results: integers are added
//! in 128 bits, and floats exactly (module `exact`), so each result is rounded once. Functions follow NumPy in their
//! result types and in their treatment of NaN.

mod accumulate;
mod cast;
mod conversion;
mod element;
mod error;
mod exact;
mod function;
mod grid;
mod kind;
mod lanes;
mod partial;
mod reduction;
mod rows;
mod statistics;

pub use accumulate::SPILL_MEMORY;
pub use cast::Cast;
pub use conversion::{Conversion, Unrepresentable};
pub use error::ComputeError;
pub use function::{Function, Missing, Operation, UnknownFunction};
pub use grid::{AxisPositions, GroupGrid, Windows};
pub use partial::Partial;
pub use reduction::{
    Edge, FUNCTION_DIMENSION, Input, ReducedDimensions, Reduction, ReductionRequest, ResultDimension, find_dimension,
};
pub use statistics::{Statistics, StatisticsPass, StatisticsPasses, StatisticsRequest};
