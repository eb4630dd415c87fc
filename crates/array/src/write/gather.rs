//! Gathering: from received elements to chunks.

use std::sync::Arc;

use bytes::Bytes;
use zarrd_codec::{ChunkRepresentation, Elements, VariableBuilder, VariableElements, filled};

use super::{
    layout::elements,
    segments::{InternalError, Segments},
};
use crate::{
    buffer_pool::BufferPool,
    grid::{
        dimension::DimIndexer,
        strided::{StridedCopies, StridedCopy, Strides},
    },
};

/// Received elements, with the strides of their positions.
#[derive(Clone, Debug)]
pub(crate) struct SourceElements {
    elements: ReceivedElements,
    strides: Strides,
}

/// Received elements.
#[derive(Clone, Debug)]
enum ReceivedElements {
    /// Elements of a fixed size.
    Fixed(Segments),
    /// Elements of variable length.
    Variable(VariableElements),
}

/// A part of a chunk's elements: their indices, and their positions in a source. There are indices for each dimension,
/// or, of points, one list of indices that count the chunk's elements in C order.
#[derive(Clone, Debug)]
pub(crate) struct Patch {
    pub(crate) selection: Vec<DimIndexer>,
    pub(crate) source: SourceElements,
}

/// The content of a chunk beneath its patches.
#[derive(Debug)]
pub(crate) enum ChunkBase {
    /// Irrelevant: the patches cover it.
    Overwritten,
    /// The fill value.
    Missing,
    /// The stored elements.
    Stored(Elements),
}

impl SourceElements {
    /// Elements of this shape in C order.
    pub(crate) fn new(elements: Elements, shape: &[u64]) -> Self {
        Self { elements: elements.into(), strides: Strides::of(shape) }
    }

    /// Elements of a fixed size and this shape in C order.
    pub(crate) fn received(bytes: Segments, shape: &[u64]) -> Self {
        Self { elements: ReceivedElements::Fixed(bytes), strides: Strides::of(shape) }
    }

    /// One element for every position along `rank` dimensions.
    pub(crate) fn scalar(element: Elements, rank: usize) -> Self {
        Self { elements: element.into(), strides: Strides::broadcast(rank) }
    }

    /// True if one element stands for every position.
    pub(crate) fn is_scalar(&self) -> bool {
        self.strides.is_broadcast()
    }
}

impl From<Elements> for ReceivedElements {
    fn from(elements: Elements) -> Self {
        match elements {
            Elements::Fixed(bytes) => Self::Fixed(bytes.into()),
            Elements::Variable(elements) => Self::Variable(elements),
        }
    }
}

impl Patch {
    /// The strides of the indices in a chunk of this shape.
    fn strides(&self, shape: &[u64]) -> Strides {
        match self.points(shape.len()) {
            Some(_) => Strides(vec![1]),
            None => Strides::of(shape),
        }
    }

    /// The indices in C order, with their positions, of points in a chunk of `rank` dimensions; `None` for indices of
    /// each dimension.
    pub(crate) fn points(&self, rank: usize) -> Option<&[(u64, u64)]> {
        match self.selection.as_slice() {
            [DimIndexer::Listed(pairs)] if rank != 1 => Some(pairs),
            _ => None,
        }
    }
}

/// Copies the selected elements of a window, in C order.
pub(crate) fn gather(window: &SourceElements, selection: &[DimIndexer], size: usize) -> Result<Vec<u8>, InternalError> {
    let shape: Vec<u64> = selection.iter().map(DimIndexer::len).collect();
    let numbered: Vec<DimIndexer> = selection.iter().map(numbered).collect();
    let ReceivedElements::Fixed(from) = &window.elements else { return Err(InternalError) };
    let mut out = filled(0, index(elements(selection))?.checked_mul(size).ok_or(InternalError)?);
    let runs = StridedCopies::new(&numbered, &Strides::of(&shape), &window.strides);
    copy(&mut out, from, &runs, size)?;
    Ok(out)
}

/// A patch of gathered elements.
pub(crate) fn buffered(elements: Bytes, selection: &[DimIndexer]) -> Patch {
    let shape: Vec<u64> = selection.iter().map(DimIndexer::len).collect();
    let renumbered = |indices: &DimIndexer| match indices {
        DimIndexer::Strided { first, step, len, .. } => {
            DimIndexer::Strided { first: *first, step: *step, len: *len, out: 0 }
        }
        DimIndexer::Listed(pairs) => {
            DimIndexer::Listed(pairs.iter().zip(0..).map(|((index, _), out)| (*index, out)).collect())
        }
    };
    Patch {
        selection: selection.iter().map(renumbered).collect(),
        source: SourceElements::new(Elements::Fixed(elements), &shape),
    }
}

/// The same indices, at consecutive positions.
fn numbered(indices: &DimIndexer) -> DimIndexer {
    match indices {
        DimIndexer::Strided { len, out, .. } => DimIndexer::Strided { first: 0, step: 1, len: *len, out: *out },
        DimIndexer::Listed(pairs) => {
            DimIndexer::Listed(pairs.iter().zip(0..).map(|((_, out), index)| (index, *out)).collect())
        }
    }
}

/// Assembles a chunk: its base, with the patches applied.
pub(crate) fn assemble(
    chunk: &ChunkRepresentation,
    base: ChunkBase,
    patches: &[Patch],
    buffers: &Arc<BufferPool>,
) -> Result<Elements, InternalError> {
    match chunk.data_type().fixed_size() {
        Some(0) => Ok(Elements::Fixed(Bytes::new())),
        Some(size) => {
            if let ([patch], ChunkBase::Overwritten) = (patches, &base)
                && let Some(elements) = as_it_is(chunk, patch, size)
            {
                return Ok(Elements::Fixed(elements));
            }
            let mut chunk_bytes = fixed_base(chunk, base, size, buffers)?;
            for patch in patches {
                let ReceivedElements::Fixed(from) = &patch.source.elements else { return Err(InternalError) };
                let strides = patch.strides(chunk.shape());
                let runs = StridedCopies::new(&patch.selection, &strides, &patch.source.strides);
                copy(&mut chunk_bytes, from, &runs, size)?;
            }
            Ok(Elements::Fixed(buffers.freeze(chunk_bytes)))
        }
        None => {
            let base = match base {
                ChunkBase::Stored(Elements::Variable(elements)) => Some(elements),
                ChunkBase::Stored(Elements::Fixed(_)) => return Err(InternalError),
                ChunkBase::Overwritten | ChunkBase::Missing => None,
            };
            assemble_variable(chunk, base.as_ref(), patches).map(Elements::Variable)
        }
    }
}

/// The elements of a patch that covers the whole chunk in C order, without a copy.
fn as_it_is(chunk: &ChunkRepresentation, patch: &Patch, size: usize) -> Option<Bytes> {
    let run = StridedCopies::new(&patch.selection, &patch.strides(chunk.shape()), &patch.source.strides).single()?;
    let in_order = run.len == 1 || (run.step == 1 && run.out_step == 1);
    let ReceivedElements::Fixed(bytes) = &patch.source.elements else { return None };
    if !in_order || run.from != 0 || run.len != chunk.num_elements() {
        return None;
    }
    let start = usize::try_from(run.out).ok()?.checked_mul(size)?;
    let end = usize::try_from(run.len).ok()?.checked_mul(size)?.checked_add(start)?;
    bytes.contiguous(start, end)
}

fn fixed_base(
    chunk: &ChunkRepresentation,
    base: ChunkBase,
    size: usize,
    buffers: &BufferPool,
) -> Result<Vec<u8>, InternalError> {
    let len = index(chunk.num_elements())?.checked_mul(size).ok_or(InternalError)?;
    let fill = chunk.fill_value();
    match base {
        ChunkBase::Stored(Elements::Fixed(bytes)) if bytes.len() == len => Ok(bytes.into()),
        ChunkBase::Stored(_) => Err(InternalError),
        ChunkBase::Missing if fill.iter().any(|&byte| byte != 0) => {
            let mut all = zeros(len, buffers);
            all.chunks_exact_mut(size).for_each(|element| {
                element.iter_mut().zip(fill).for_each(|(to, &byte)| *to = byte);
            });
            Ok(all)
        }
        ChunkBase::Missing | ChunkBase::Overwritten => Ok(zeros(len, buffers)),
    }
}

fn zeros(len: usize, buffers: &BufferPool) -> Vec<u8> {
    let mut bytes = buffers.take_empty(len);
    bytes.resize(len, 0);
    bytes
}

fn assemble_variable(
    chunk: &ChunkRepresentation,
    base: Option<&VariableElements>,
    patches: &[Patch],
) -> Result<VariableElements, InternalError> {
    let mut cells: Vec<&[u8]> = match base {
        Some(elements) if elements.len() as u64 == chunk.num_elements() => elements.iter().collect(),
        Some(_) => return Err(InternalError),
        None => vec![chunk.fill_value(); index(chunk.num_elements())?],
    };
    for patch in patches {
        let ReceivedElements::Variable(from) = &patch.source.elements else { return Err(InternalError) };
        let strides = patch.strides(chunk.shape());
        StridedCopies::new(&patch.selection, &strides, &patch.source.strides).visit(|run| {
            let StridedCopy { from: mut to, step, mut out, out_step, len } = run;
            for _ in 0..len {
                *cells.get_mut(index(to)?).ok_or(InternalError)? = from.get(index(out)?).ok_or(InternalError)?;
                to = to.wrapping_add_signed(step);
                out += out_step;
            }
            Ok(())
        })?;
    }
    let mut elements = VariableBuilder::new(u64::MAX);
    cells.into_iter().try_for_each(|cell| elements.push(cell).map_err(|_| InternalError))?;
    Ok(elements.finish())
}

/// Copies elements of a fixed size from their positions to their indices.
fn copy(to: &mut [u8], from: &Segments, runs: &StridedCopies, size: usize) -> Result<(), InternalError> {
    let copy_run = match size {
        0 => return Ok(()),
        1 => copy_run::<1>,
        2 => copy_run::<2>,
        4 => copy_run::<4>,
        8 => copy_run::<8>,
        16 => copy_run::<16>,
        _ => return runs.visit(|run| from.visit(run, size, |from, run| copy_any_run(to, from, run, size))),
    };
    runs.visit(|run| from.visit(run, size, |from, run| copy_run(to, from, run)))
}

/// One strided [`copy`] of elements of any size.
fn copy_any_run(to: &mut [u8], from: &[u8], run: StridedCopy, size: usize) -> Result<(), InternalError> {
    let StridedCopy { from: mut at, step, mut out, out_step, len } = run;
    let cell = |position: u64| {
        let start = index(position)?.checked_mul(size).ok_or(InternalError)?;
        Ok(start..start.checked_add(size).ok_or(InternalError)?)
    };
    for _ in 0..len {
        let source = from.get(cell(out)?).ok_or(InternalError)?;
        to.get_mut(cell(at)?).ok_or(InternalError)?.copy_from_slice(source);
        at = at.wrapping_add_signed(step);
        out += out_step;
    }
    Ok(())
}

/// One strided [`copy`], with a size known at compile time.
#[inline]
fn copy_run<const SIZE: usize>(to: &mut [u8], from: &[u8], run: StridedCopy) -> Result<(), InternalError> {
    let StridedCopy { from: at, step, out, out_step, len } = run;
    let (to, _) = to.as_chunks_mut::<SIZE>();
    let (from, _) = from.as_chunks::<SIZE>();
    let (first, len) = (index(at)?, index(len)?);
    let source = from.get(index(out)?..).ok_or(InternalError)?;
    if step == 1 && out_step == 1 {
        let target = to.get_mut(first..).and_then(|to| to.get_mut(..len)).ok_or(InternalError)?;
        target.copy_from_slice(source.get(..len).ok_or(InternalError)?);
        return Ok(());
    }
    if step == 1 && out_step == 0 {
        let target = to.get_mut(first..).and_then(|to| to.get_mut(..len)).ok_or(InternalError)?;
        target.fill(*source.first().ok_or(InternalError)?);
        return Ok(());
    }
    let mut at = at;
    let apart = index(out_step)?;
    for number in 0..len {
        *to.get_mut(index(at)?).ok_or(InternalError)? = *source.get(number * apart).ok_or(InternalError)?;
        at = at.wrapping_add_signed(step);
    }
    Ok(())
}

fn index(number: u64) -> Result<usize, InternalError> {
    usize::try_from(number).map_err(|_| InternalError)
}
