//! From elements that are written to chunks.

use bytes::{Bytes, BytesMut};
use codec::{Elements, Representation, VariableBuilder, VariableElements};

use super::layout::elements;
use crate::plan::{AxisIndices, Run, Runs, Strides};

/// Elements that are written, and how places are counted in them.
#[derive(Clone, Debug)]
pub(super) struct Source {
    elements: Elements,
    strides: Strides,
}

/// Some of a chunk's elements: the indices, and where what is written there is found.
#[derive(Clone, Debug)]
pub(super) struct Patch {
    pub(super) picks: Vec<AxisIndices>,
    pub(super) source: Source,
}

/// What a chunk has where no patch says anything.
#[derive(Debug)]
pub(super) enum Base {
    /// There is no such place.
    Overwritten,
    /// The fill value.
    Missing,
    /// What is stored.
    Stored(Elements),
}

/// A place that is none of the elements: a mistake of this crate's, found before anything is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Misplaced;

impl Source {
    /// Elements in C order, of this shape.
    pub(super) fn new(elements: Elements, shape: &[u64]) -> Self {
        Self { elements, strides: Strides::of(shape) }
    }

    /// One element for every place along so many axes.
    pub(super) fn scalar(element: Elements, rank: usize) -> Self {
        Self { elements: element, strides: Strides::nowhere(rank) }
    }
}

/// Picked elements of a window by themselves, in C order.
pub(super) fn gather(window: &Source, picks: &[AxisIndices], size: usize) -> Result<Vec<u8>, Misplaced> {
    let shape: Vec<u64> = picks.iter().map(AxisIndices::len).collect();
    let numbered: Vec<AxisIndices> = picks.iter().map(numbered).collect();
    let Elements::Fixed(from) = &window.elements else { return Err(Misplaced) };
    let mut out = vec![0; index(elements(picks))?.checked_mul(size).ok_or(Misplaced)?];
    let runs = Runs::new(&numbered, &Strides::of(&shape), &window.strides);
    copy(&mut out, from, &runs, size)?;
    Ok(out)
}

/// What [`gather`] made of picks, to be put where they belong.
pub(super) fn gathered(elements: Bytes, picks: &[AxisIndices]) -> Patch {
    let shape: Vec<u64> = picks.iter().map(AxisIndices::len).collect();
    let renumbered = |indices: &AxisIndices| match indices {
        AxisIndices::Strided { first, step, len, .. } => {
            AxisIndices::Strided { first: *first, step: *step, len: *len, out: 0 }
        }
        AxisIndices::Listed(pairs) => {
            AxisIndices::Listed(pairs.iter().zip(0..).map(|((index, _), out)| (*index, out)).collect())
        }
    };
    Patch { picks: picks.iter().map(renumbered).collect(), source: Source::new(Elements::Fixed(elements), &shape) }
}

/// The places of indices, by their number.
fn numbered(indices: &AxisIndices) -> AxisIndices {
    match indices {
        AxisIndices::Strided { len, out, .. } => AxisIndices::Strided { first: 0, step: 1, len: *len, out: *out },
        AxisIndices::Listed(pairs) => {
            AxisIndices::Listed(pairs.iter().zip(0..).map(|((_, out), index)| (index, *out)).collect())
        }
    }
}

/// A chunk: its base with the patches on it.
pub(super) fn assemble(chunk: &Representation, base: Base, patches: &[Patch]) -> Result<Elements, Misplaced> {
    let strides = Strides::of(chunk.shape());
    match chunk.data_type().fixed_size() {
        Some(0) => Ok(Elements::Fixed(Bytes::new())),
        Some(size) => {
            if let ([patch], Base::Overwritten) = (patches, &base)
                && let Some(elements) = as_it_is(chunk, patch, &strides, size)
            {
                return Ok(Elements::Fixed(elements));
            }
            let mut cells = fixed_base(chunk, base, size)?;
            for patch in patches {
                let Elements::Fixed(from) = &patch.source.elements else { return Err(Misplaced) };
                copy(&mut cells, from, &Runs::new(&patch.picks, &strides, &patch.source.strides), size)?;
            }
            Ok(Elements::Fixed(cells.freeze()))
        }
        None => {
            let base = match base {
                Base::Stored(Elements::Variable(elements)) => Some(elements),
                Base::Stored(Elements::Fixed(_)) => return Err(Misplaced),
                Base::Overwritten | Base::Missing => None,
            };
            assemble_variable(chunk, base.as_ref(), patches, &strides).map(Elements::Variable)
        }
    }
}

/// The elements of a patch that are a chunk, where they lie one after the other.
fn as_it_is(chunk: &Representation, patch: &Patch, strides: &Strides, size: usize) -> Option<Bytes> {
    let run = Runs::new(&patch.picks, strides, &patch.source.strides).only()?;
    let in_order = run.len == 1 || (run.step == 1 && run.out_step == 1);
    let Elements::Fixed(bytes) = &patch.source.elements else { return None };
    if !in_order || run.from != 0 || run.len != chunk.elements() {
        return None;
    }
    let start = usize::try_from(run.out).ok()?.checked_mul(size)?;
    let end = usize::try_from(run.len).ok()?.checked_mul(size)?.checked_add(start)?;
    (end <= bytes.len()).then(|| bytes.slice(start..end))
}

fn fixed_base(chunk: &Representation, base: Base, size: usize) -> Result<BytesMut, Misplaced> {
    let len = index(chunk.elements())?.checked_mul(size).ok_or(Misplaced)?;
    let fill = chunk.fill_value();
    match base {
        Base::Stored(Elements::Fixed(bytes)) if bytes.len() == len => Ok(BytesMut::from(bytes)),
        Base::Stored(_) => Err(Misplaced),
        Base::Missing if fill.iter().any(|&byte| byte != 0) => {
            let mut cells = BytesMut::zeroed(len);
            cells.chunks_exact_mut(size).for_each(|cell| {
                cell.iter_mut().zip(fill).for_each(|(cell, &byte)| *cell = byte);
            });
            Ok(cells)
        }
        Base::Missing | Base::Overwritten => Ok(BytesMut::zeroed(len)),
    }
}

fn assemble_variable(
    chunk: &Representation,
    base: Option<&VariableElements>,
    patches: &[Patch],
    strides: &Strides,
) -> Result<VariableElements, Misplaced> {
    let mut cells: Vec<&[u8]> = match base {
        Some(elements) if elements.len() as u64 == chunk.elements() => elements.iter().collect(),
        Some(_) => return Err(Misplaced),
        None => vec![chunk.fill_value(); index(chunk.elements())?],
    };
    for patch in patches {
        let Elements::Variable(from) = &patch.source.elements else { return Err(Misplaced) };
        Runs::new(&patch.picks, strides, &patch.source.strides).visit(|run| {
            let Run { from: mut to, step, mut out, out_step, len } = run;
            for _ in 0..len {
                *cells.get_mut(index(to)?).ok_or(Misplaced)? = from.get(index(out)?).ok_or(Misplaced)?;
                to = to.wrapping_add_signed(step);
                out += out_step;
            }
            Ok(())
        })?;
    }
    let mut elements = VariableBuilder::new(u64::MAX);
    cells.into_iter().try_for_each(|cell| elements.push(cell).map_err(|_| Misplaced))?;
    Ok(elements.finish())
}

/// Copies elements of a size from their places to their indices.
fn copy(to: &mut [u8], from: &[u8], runs: &Runs, size: usize) -> Result<(), Misplaced> {
    match size {
        0 => Ok(()),
        1 => runs.visit(|run| copy_run::<1>(to, from, run)),
        2 => runs.visit(|run| copy_run::<2>(to, from, run)),
        4 => runs.visit(|run| copy_run::<4>(to, from, run)),
        8 => runs.visit(|run| copy_run::<8>(to, from, run)),
        16 => runs.visit(|run| copy_run::<16>(to, from, run)),
        _ => runs.visit(|run| {
            let Run { from: mut at, step, mut out, out_step, len } = run;
            let cell = |position: u64| {
                let start = index(position)?.checked_mul(size).ok_or(Misplaced)?;
                Ok(start..start.checked_add(size).ok_or(Misplaced)?)
            };
            for _ in 0..len {
                let source = from.get(cell(out)?).ok_or(Misplaced)?;
                to.get_mut(cell(at)?).ok_or(Misplaced)?.copy_from_slice(source);
                at = at.wrapping_add_signed(step);
                out += out_step;
            }
            Ok(())
        }),
    }
}

/// [`copy`] of one run, with a size that the compiler knows.
#[inline]
fn copy_run<const SIZE: usize>(to: &mut [u8], from: &[u8], run: Run) -> Result<(), Misplaced> {
    let Run { from: at, step, out, out_step, len } = run;
    let (to, _) = to.as_chunks_mut::<SIZE>();
    let (from, _) = from.as_chunks::<SIZE>();
    let (first, len) = (index(at)?, index(len)?);
    let source = from.get(index(out)?..).ok_or(Misplaced)?;
    if step == 1 && out_step == 1 {
        let target = to.get_mut(first..).and_then(|to| to.get_mut(..len)).ok_or(Misplaced)?;
        target.copy_from_slice(source.get(..len).ok_or(Misplaced)?);
        return Ok(());
    }
    if step == 1 && out_step == 0 {
        let target = to.get_mut(first..).and_then(|to| to.get_mut(..len)).ok_or(Misplaced)?;
        target.fill(*source.first().ok_or(Misplaced)?);
        return Ok(());
    }
    let mut at = at;
    let apart = index(out_step)?;
    for number in 0..len {
        *to.get_mut(index(at)?).ok_or(Misplaced)? = *source.get(number * apart).ok_or(Misplaced)?;
        at = at.wrapping_add_signed(step);
    }
    Ok(())
}

fn index(number: u64) -> Result<usize, Misplaced> {
    usize::try_from(number).map_err(|_| Misplaced)
}
