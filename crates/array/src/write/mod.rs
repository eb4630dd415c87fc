//! Writing elements: the way from a selection and its elements to chunks.
//!
//! The way of an element: [`intake`] gathers what comes into windows, parts of the region that follow each other; the [`layout`] says what each window has of each chunk.
//! Chunks that are whole in a window are [made](target) at once, several at a time, while the next window comes. [Parts](kept) of others wait until everything is there, and are
//! then [merged](merge) with what is stored. Nothing is visible before all of it is, in one [`commit`].

mod append;
mod commit;
mod encode;
mod error;
mod gather;
mod layout;
mod memory;
mod merge;
mod pending;
mod read_modify_write;
mod reader;
mod receive;

pub use append::Append;
pub use error::WriteError;

use std::{collections::HashSet, sync::Arc};

use codec::VariableElements;
use meta::{
    ArrayModel, Dialect, NodePath,
    grid::DimensionGrid,
    selection::{DimensionSelection, Region, Selection},
};
use store::{ByteStream, MAX_COMMIT_CHANGES, Precondition, Version};

use self::{
    commit::{WriteKind, WriteTarget},
    encode::WriteContext,
    layout::ChunkedRegion,
};
use crate::{
    Arrays,
    context::Context,
    error::ArrayError,
    grid::DimIndexer,
    node::{array::Array, resolved::ResolvedArray},
};

/// The most chunks that one write concerns. They are one commit, with documents beside them.
const MAX_CHUNKS: u64 = 100_000;
const _: () = assert!(MAX_CHUNKS + 256 < MAX_COMMIT_CHANGES as u64, "there is room for documents");

/// A region that is about to be written. Nothing was read but metadata.
#[derive(Debug)]
pub struct RegionWrite {
    context: Arc<Context>,
    target: WriteTarget,
    resolved: Arc<ResolvedArray>,
    selection: Selection,
    /// By where it is stored.
    region: Region,
    shape: Vec<u64>,
}

/// Elements on their way in, as [`ElementType`](meta::data_type::ElementType) has them in memory.
pub enum ElementSource {
    /// Of a fixed size, in C order of the region, in pieces of any length. An error that the stream yields fails the write with that error.
    Fixed(ByteStream),
    /// Of variable length, in C order of the region.
    Variable(VariableElements),
    /// One element for all of the region.
    Scalar(Vec<u8>),
}

/// What a write did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteReport {
    /// The version that the node has now.
    pub version: Option<Version>,
    /// The array's shape now, as people see it.
    pub shape: Vec<u64>,
    /// How many chunks (of a sharded array: shards) were stored.
    pub chunks_written: u64,
    /// How many were erased, or left out, since they are full of the fill value.
    pub chunks_erased: u64,
    /// How many had to be done again because somebody else wrote them meanwhile.
    pub conflicts_retried: u64,
}

impl Arrays {
    /// Makes ready to write what `selection` has of the array at `path`. Repeated indices in lists are refused: it would not be said which element stays.
    ///
    /// `condition` must hold of the node's version; it is judged now, and again with the commit.
    pub async fn write(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        selection: &Selection,
        condition: Precondition,
    ) -> Result<RegionWrite, WriteError> {
        let place = WriteTarget { path: path.clone(), dialect, condition };
        let context = self.0.for_operation();
        let resolved = place.resolve(&context).await?;
        let model = resolved.array.model();
        let seen = selection.resolve(&model.view_shape()).map_err(ArrayError::from)?;
        check_lists(&seen)?;
        let shape = seen.shape();
        let region = seen.shifted(&model.origin);
        check_chunks(&resolved.array, &region)?;
        Ok(RegionWrite { context, target: place, resolved, selection: selection.clone(), region, shape })
    }

    /// Makes ready to append along a dimension (negative from the end).
    pub async fn append(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        dimension: i64,
        condition: Precondition,
    ) -> Result<Append, WriteError> {
        let place = WriteTarget { path: path.clone(), dialect, condition };
        let context = self.0.for_operation();
        let resolved = place.resolve(&context).await?;
        Append::new(context, place, resolved, dimension)
    }

    /// What the node at a path is, if it is an array, and its version.
    pub async fn model(&self, path: &NodePath, dialect: Option<Dialect>) -> Result<(ArrayModel, Version), ArrayError> {
        let place = WriteTarget { path: path.clone(), dialect, condition: Precondition::none() };
        let resolved = place.resolve_current(&self.0).await?;
        Ok((resolved.array.model().clone(), resolved.version()))
    }
}

impl RegionWrite {
    /// The array.
    pub fn model(&self) -> &ArrayModel {
        self.resolved.array.model()
    }

    /// The shape that the elements must have, without the dimensions of which one index is selected.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// How many bytes elements of a fixed size have in all.
    pub fn byte_len(&self) -> Option<u64> {
        let elements = self.region.elements().unwrap_or(u64::MAX);
        Some(elements.saturating_mul(self.model().data_type.fixed_size()? as u64))
    }

    /// Writes the elements: all of them become visible in one commit, or none. Memory does not grow with their number.
    pub async fn execute(self, elements: ElementSource) -> Result<WriteReport, WriteError> {
        let Some(layout) = ChunkedRegion::new(&self.region, self.model()) else {
            receive::expect_no_elements(elements).await?;
            return Ok(commit::empty_report(&self.resolved));
        };
        let target = Arc::new(WriteContext::new(self.context, self.resolved.array.clone(), layout)?);
        let received = receive::receive(&target, target.context.account(), elements).await?;
        let kind = WriteKind::Region(&self.selection, &self.region);
        commit::commit(&target, &self.target, self.resolved, &kind, received).await
    }
}

/// Fails where a list names an index twice.
fn check_lists(region: &Region) -> Result<(), WriteError> {
    for (dimension, selected) in region.dimensions.iter().enumerate() {
        let DimensionSelection::List(indices) = selected else { continue };
        let mut seen = HashSet::with_capacity(indices.len());
        if let Some(&index) = indices.iter().find(|&&index| !seen.insert(index)) {
            return Err(WriteError::RepeatedIndex { dimension, index });
        }
    }
    Ok(())
}

/// Fails where a region concerns more chunks than a commit has changes, or one whose key would be too long.
fn check_chunks(array: &Array, region: &Region) -> Result<(), WriteError> {
    let axes = || region.dimensions.iter().zip(array.grid().dimensions());
    let chunks = axes().fold(1, |product: u128, (dimension, grid)| product.saturating_mul(max_chunks(dimension, grid)));
    if chunks > u128::from(MAX_CHUNKS) {
        return Err(ArrayError::TooManyChunks { chunks, limit: MAX_CHUNKS }.into());
    }
    let furthest = |(dimension, grid): (&DimensionSelection, &DimensionGrid)| grid.piece_of(max_index(dimension)?);
    let Some(position) = axes().map(furthest).collect::<Option<Vec<_>>>() else { return Ok(()) };
    match array.chunk_keys(&position).next() {
        Some(_) => Ok(()),
        None => Err(WriteError::ChunkKey { path: array.path().clone() }),
    }
}

/// How many pieces of a grid a selection touches.
fn max_chunks(dimension: &DimensionSelection, grid: &DimensionGrid) -> u128 {
    match dimension {
        // Many of its indices may be in one piece.
        DimensionSelection::List(indices) => {
            indices.iter().filter_map(|&index| grid.piece_of(index)).collect::<HashSet<_>>().len() as u128
        }
        _ => DimIndexer::of(dimension).map_or(0, |indices| u128::from(indices.max_chunks(grid))),
    }
}

/// The largest index; `None` where there is none.
fn max_index(dimension: &DimensionSelection) -> Option<u64> {
    match dimension {
        DimensionSelection::Index(index) => Some(*index),
        DimensionSelection::Range { start, step, len } => {
            let last = len.checked_sub(1)?;
            if *step < 0 { Some(*start) } else { start.checked_add(step.unsigned_abs().checked_mul(last)?) }
        }
        DimensionSelection::List(indices) => indices.iter().max().copied(),
    }
}

impl std::fmt::Debug for ElementSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Fixed(_) => "Fixed",
            Self::Variable(_) => "Variable",
            Self::Scalar(_) => "Scalar",
        })
    }
}
