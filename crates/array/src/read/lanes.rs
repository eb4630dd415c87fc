//! Where a slab is assembled: in lanes, each a run of its elements.
//!
//! Many tasks write into one slab at the same time. Each lane has a lock of its own, held for a copy at a time, so that tasks that decode neighbouring chunks
//! seldom meet; and each is yielded as soon as it is full, so that an answer begins before all chunks of its first slab are decoded.

use std::sync::Arc;

use bytes::Bytes;
use codec::{Elements, VariableBuilder};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::OwnedSemaphorePermit;

use super::buffers::{Buffers, Retained, lent};
use crate::share::Permit;

/// In what a lane's memory is counted.
pub(super) const UNIT: u64 = 1 << 10;

/// How many bytes a lane should have. Small enough that the first is full early, large enough that it is worth a write to a socket.
const LANE: u64 = 128 << 10;

/// How many a lane of a small slab should have, which is soon full anyhow.
const LANE_OF_SMALL: u64 = 1 << 20;

/// Up to how many bytes a slab is small.
const SMALL: u64 = 4 << 20;

/// What an element of variable length costs in a lane beside its own bytes.
pub(super) const SLOT: u64 = size_of::<Box<[u8]>>() as u64;

/// How a slab is divided into lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    elements: u64,
    /// How many elements follow each other for one index of the axes before the one that is divided.
    block: u64,
    /// How many elements a lane has; the last of each block may have fewer.
    lane: u64,
    /// How many lanes a block has.
    lanes_per_block: u64,
}

/// A slab being assembled.
#[derive(Debug)]
pub(super) struct Canvas {
    layout: Layout,
    /// The size of an element in bytes; `None` where each has its own.
    size: Option<usize>,
    lanes: Vec<Mutex<Lane>>,
    supplies: Supplies,
}

/// What all slabs of a reading share.
#[derive(Clone, Debug)]
pub(super) struct Supplies {
    pub(super) buffers: Arc<Buffers>,
    /// What the elements of variable length take that were assembled and not yet taken.
    pub(super) retained: Arc<Retained>,
    /// The memory of the reading, which lasts until the last use of what it yielded.
    pub(super) memory: Option<Arc<Permit>>,
}

/// A run of elements being assembled.
#[derive(Debug, Default)]
enum Lane {
    /// Nothing was written to it, and it has no memory.
    Empty { permit: Option<OwnedSemaphorePermit> },
    Open {
        cells: Cells,
        /// How many elements were written. Each is written exactly once, so the lane is full when this is their number.
        written: u64,
        _permit: Option<OwnedSemaphorePermit>,
    },
    #[default]
    Taken,
}

#[derive(Debug)]
enum Cells {
    Fixed(Vec<u8>),
    /// All elements of the lane as they were decoded.
    Whole(Bytes),
    Variable(Vec<Box<[u8]>>),
}

/// Writes into a slab, keeping the lane that it wrote into last.
pub(super) struct Brush<'a> {
    canvas: &'a Canvas,
    held: Option<Held<'a>>,
}

/// A lane that is written to.
struct Held<'a> {
    number: usize,
    /// Its first element in the slab.
    start: u64,
    /// How many elements it has.
    len: u64,
    lane: MutexGuard<'a, Lane>,
}

/// Elements of a fixed size that stand at equal distances.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strided<'a> {
    /// What they stand in.
    pub(super) bytes: &'a [u8],
    /// Where the first is, counted in elements.
    pub(super) first: u64,
    /// How many elements further the next one is.
    pub(super) step: i64,
    /// How many there are.
    pub(super) count: u64,
}

/// Why an element is not assembled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceError {
    /// Its place is not being assembled, or it is none of its chunk: a mistake of this crate's, found before wrong elements leave.
    Misplaced,
    /// Elements of variable length take more memory than there is.
    OverBudget,
}

impl Layout {
    /// Divides a slab of these extents, whose elements have `size` bytes. `chunk` says how far along an axis the answer goes before it meets other
    /// chunks.
    pub(super) fn new(extents: &[u64], size: u64, chunk: impl Fn(usize) -> u64) -> Self {
        let elements = extents.iter().fold(1_u64, |product, &extent| product.saturating_mul(extent));
        let lane = if elements.saturating_mul(size) <= SMALL { LANE_OF_SMALL } else { LANE };
        let fit = (lane / size.max(1)).max(1);
        let mut after = 1_u64;
        for (axis, &extent) in extents.iter().enumerate().rev() {
            let block = after.saturating_mul(extent);
            if block > fit || axis == 0 {
                let most = (fit / after.max(1)).max(1);
                let chunk = chunk(axis).max(1);
                let count = if chunk <= most { most - most % chunk } else { most };
                let count = count.min(extent.max(1));
                return Self { elements, block, lane: count * after, lanes_per_block: extent.div_ceil(count) };
            }
            after = block;
        }
        Self { elements, block: elements, lane: elements, lanes_per_block: 1 }
    }

    /// How many [`UNIT`]s of memory a slab of elements of `size` bytes takes.
    pub(super) fn units(&self, size: Option<usize>) -> u64 {
        (0..self.lanes()).map(|lane| self.lane_units(lane, size)).sum()
    }

    fn lane_units(&self, lane: u64, size: Option<usize>) -> u64 {
        let per_element = size.map_or(SLOT, |size| size as u64);
        self.len(lane).saturating_mul(per_element).div_ceil(UNIT)
    }

    fn lanes(&self) -> u64 {
        (self.elements / self.block.max(1)).saturating_mul(self.lanes_per_block)
    }

    /// Which lane has an element, and as which of its elements.
    fn lane_of(&self, element: u64) -> (u64, u64) {
        let (block, within) = (element / self.block.max(1), element % self.block.max(1));
        (block * self.lanes_per_block + within / self.lane.max(1), within % self.lane.max(1))
    }

    /// How many elements a lane has.
    fn len(&self, lane: u64) -> u64 {
        let start = (lane % self.lanes_per_block.max(1)).saturating_mul(self.lane);
        self.block.saturating_sub(start).min(self.lane)
    }
}

impl Canvas {
    /// A slab of elements of `size` bytes, or each of its own length. Lanes get their memory when they are first written to; `permit` is for
    /// [all of it](Layout::units), a part of which each lane gives back when it is taken.
    pub(super) fn new(
        layout: Layout,
        size: Option<usize>,
        mut permit: OwnedSemaphorePermit,
        supplies: Supplies,
    ) -> Self {
        let lane = |lane| {
            let units = usize::try_from(layout.lane_units(lane, size)).unwrap_or(usize::MAX);
            Mutex::new(Lane::Empty { permit: permit.split(units) })
        };
        let lanes = (0..layout.lanes()).map(lane).collect();
        Self { layout, size, lanes, supplies }
    }

    /// How many lanes there are.
    pub(super) fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// The size of an element in bytes; `None` where each has its own.
    pub(super) fn size(&self) -> Option<usize> {
        self.size
    }

    /// Takes a lane that is full; `None` for one that is not yet.
    pub(super) fn take(&self, lane: usize) -> Option<Result<Elements, PlaceError>> {
        let mut state = self.lanes.get(lane)?.lock();
        let len = self.layout.len(lane as u64);
        if !matches!(*state, Lane::Open { written, .. } if written >= len) {
            return None;
        }
        // Its room is free for the next slab as soon as it is taken, whatever its reader does with it: nobody who assembles waits for a reader.
        let Lane::Open { cells, written, .. } = std::mem::take(&mut *state) else { return None };
        drop(state);
        let memory = self.supplies.memory.clone();
        if written > len {
            return Some(Err(PlaceError::Misplaced));
        }
        Some(match cells {
            Cells::Fixed(buffer) => Ok(Elements::Fixed(self.supplies.buffers.lend(buffer, memory))),
            Cells::Whole(bytes) => Ok(Elements::Fixed(lent(bytes, memory))),
            Cells::Variable(cells) => self.collect(cells),
        })
    }

    /// Something to write with.
    pub(super) fn brush(&self) -> Brush<'_> {
        Brush { canvas: self, held: None }
    }

    /// The memory of a lane.
    fn cells(&self, lane: usize) -> Cells {
        let len = usize::try_from(self.layout.len(lane as u64)).unwrap_or_default();
        match self.size {
            Some(size) => Cells::Fixed(self.supplies.buffers.take(len.saturating_mul(size))),
            None => Cells::Variable(vec![Box::default(); len]),
        }
    }

    fn collect(&self, cells: Vec<Box<[u8]>>) -> Result<Elements, PlaceError> {
        let mut elements = VariableBuilder::new(u64::MAX);
        for cell in cells {
            elements.push(&cell).map_err(|_| PlaceError::OverBudget)?;
            self.supplies.retained.give_back(cell.len() as u64);
        }
        Ok(Elements::Variable(elements.finish()))
    }
}

impl<'a> Brush<'a> {
    /// Writes elements of a fixed size that stand one after the other, `bytes` in all, to `out` and the places that follow.
    #[inline]
    pub(super) fn write(&mut self, out: u64, bytes: &[u8]) -> Result<(), PlaceError> {
        let size = self.canvas.size.unwrap_or(0);
        let mut out = out;
        let mut bytes = bytes;
        while !bytes.is_empty() {
            let (room, written) = self.room(out, size)?;
            let count = room.len().min(bytes.len());
            let (now, later) = bytes.split_at_checked(count).ok_or(PlaceError::Misplaced)?;
            room.get_mut(..count).ok_or(PlaceError::Misplaced)?.copy_from_slice(now);
            let elements = (count / size) as u64;
            *written += elements;
            out += elements;
            bytes = later;
        }
        Ok(())
    }

    /// As [`write`](Self::write), of bytes that may be kept: a lane of which they are all takes them as they are.
    pub(super) fn give(&mut self, out: u64, bytes: &Bytes) -> Result<(), PlaceError> {
        let size = self.canvas.size.filter(|&size| size > 0).ok_or(PlaceError::Misplaced)?;
        let (mut out, mut start) = (out, 0_usize);
        while start < bytes.len() {
            let (number, first) = self.canvas.layout.lane_of(out);
            let elements = self.canvas.layout.len(number).saturating_sub(first);
            let room = usize::try_from(elements).ok().and_then(|elements| elements.checked_mul(size));
            let count = room.ok_or(PlaceError::Misplaced)?.min(bytes.len() - start);
            if count == 0 {
                return Err(PlaceError::Misplaced);
            }
            let now = bytes.slice(start..start + count);
            match first == 0 && (count / size) as u64 == elements {
                true => self.fill_lane(out, now, elements)?,
                false => self.write(out, &now)?,
            }
            out += (count / size) as u64;
            start += count;
        }
        Ok(())
    }

    fn fill_lane(&mut self, out: u64, bytes: Bytes, elements: u64) -> Result<(), PlaceError> {
        self.lock(out)?;
        let held = self.held.as_mut().ok_or(PlaceError::Misplaced)?;
        let Lane::Empty { permit } = &mut *held.lane else { return Err(PlaceError::Misplaced) };
        *held.lane = Lane::Open { _permit: permit.take(), cells: Cells::Whole(bytes), written: elements };
        Ok(())
    }

    /// Writes elements of a fixed size that stand at equal distances, to `out` and the places that follow.
    #[inline]
    pub(super) fn write_strided(&mut self, out: u64, elements: Strided<'_>) -> Result<(), PlaceError> {
        let size = self.canvas.size.unwrap_or(0);
        let mut out = out;
        let mut left = elements;
        while left.count > 0 {
            let (room, written) = self.room(out, size)?;
            let count = ((room.len() / size) as u64).min(left.count);
            let bytes = usize::try_from(count).map_err(|_| PlaceError::Misplaced)? * size;
            left.copy_to(room.get_mut(..bytes).ok_or(PlaceError::Misplaced)?, size).ok_or(PlaceError::Misplaced)?;
            *written += count;
            out += count;
            left = left.after(count).ok_or(PlaceError::Misplaced)?;
        }
        Ok(())
    }

    /// Writes `count` elements of no size, of which only the number matters.
    pub(super) fn write_empty(&mut self, out: u64, count: u64) -> Result<(), PlaceError> {
        let (mut out, mut left) = (out, count);
        while left > 0 {
            let (number, first) = self.canvas.layout.lane_of(out);
            let now = self.canvas.layout.len(number).saturating_sub(first).min(left);
            let (Lane::Open { written, .. }, _) = self.hold(out)? else { return Err(PlaceError::Misplaced) };
            if now == 0 {
                return Err(PlaceError::Misplaced);
            }
            *written += now;
            out += now;
            left -= now;
        }
        Ok(())
    }

    /// Writes an element of variable length.
    pub(super) fn write_variable(&mut self, out: u64, element: &[u8]) -> Result<(), PlaceError> {
        let retained = &self.canvas.supplies.retained;
        if !retained.take(element.len() as u64) {
            return Err(PlaceError::OverBudget);
        }
        let (lane, first) = self.hold(out)?;
        let Lane::Open { cells: Cells::Variable(cells), written, .. } = lane else { return Err(PlaceError::Misplaced) };
        let cell = usize::try_from(first).ok().and_then(|first| cells.get_mut(first)).ok_or(PlaceError::Misplaced)?;
        *cell = element.into();
        *written += 1;
        Ok(())
    }

    /// The memory of a lane from `out` on, at least one element of it, and the lane's count of elements.
    #[inline]
    fn room(&mut self, out: u64, size: usize) -> Result<(&mut [u8], &mut u64), PlaceError> {
        let (lane, first) = self.hold(out)?;
        let Lane::Open { cells: Cells::Fixed(buffer), written, .. } = lane else { return Err(PlaceError::Misplaced) };
        let first = usize::try_from(first).ok().and_then(|first| first.checked_mul(size));
        let room = first.and_then(|first| buffer.get_mut(first..)).ok_or(PlaceError::Misplaced)?;
        if size == 0 || room.len() < size { Err(PlaceError::Misplaced) } else { Ok((room, written)) }
    }

    /// The lane that has an element, with its memory, and which of its elements it is.
    #[inline]
    fn hold(&mut self, out: u64) -> Result<(&mut Lane, u64), PlaceError> {
        // Dividing costs more than a short run does, and most runs go where the one before went.
        let within = self.held.as_ref().and_then(|held| out.checked_sub(held.start).filter(|&first| first < held.len));
        let first = match within {
            Some(first) => first,
            None => self.lock(out)?,
        };
        let held = self.held.as_mut().ok_or(PlaceError::Misplaced)?;
        if let Lane::Empty { permit } = &mut *held.lane {
            *held.lane = Lane::Open { _permit: permit.take(), cells: self.canvas.cells(held.number), written: 0 };
        }
        Ok((&mut *held.lane, first))
    }

    /// Locks the lane that has an element; tells which of its elements it is.
    fn lock(&mut self, out: u64) -> Result<u64, PlaceError> {
        let (number, first) = self.canvas.layout.lane_of(out);
        let len = self.canvas.layout.len(number);
        let number = usize::try_from(number).map_err(|_| PlaceError::Misplaced)?;
        // One lane is let go before another is waited for, so that no two brushes wait for each other.
        self.held = None;
        let lane = self.canvas.lanes.get(number).ok_or(PlaceError::Misplaced)?.lock();
        self.held = Some(Held { number, start: out.saturating_sub(first), len, lane });
        Ok(first)
    }
}

impl Strided<'_> {
    /// The elements after the first `count`.
    fn after(self, count: u64) -> Option<Self> {
        let left = self.count.checked_sub(count)?;
        if left == 0 {
            return Some(Self { count: left, ..self });
        }
        let distance = self.step.checked_mul(i64::try_from(count).ok()?)?;
        Some(Self { first: self.first.checked_add_signed(distance)?, count: left, ..self })
    }

    /// Copies as many of the elements as `to` has room for.
    #[inline]
    fn copy_to(&self, to: &mut [u8], size: usize) -> Option<()> {
        match size {
            1 => self.copy_sized::<1>(to),
            2 => self.copy_sized::<2>(to),
            4 => self.copy_sized::<4>(to),
            8 => self.copy_sized::<8>(to),
            16 => self.copy_sized::<16>(to),
            _ => {
                let mut from = self.first;
                for slot in to.chunks_exact_mut(size) {
                    let start = usize::try_from(from).ok()?.checked_mul(size)?;
                    slot.copy_from_slice(self.bytes.get(start..start.checked_add(size)?)?);
                    from = from.wrapping_add_signed(self.step);
                }
                Some(())
            }
        }
    }

    /// [`copy_to`](Self::copy_to) with a size that the compiler knows, so that each copy is one move.
    #[inline]
    fn copy_sized<const SIZE: usize>(&self, to: &mut [u8]) -> Option<()> {
        let (elements, _) = self.bytes.as_chunks::<SIZE>();
        let (slots, _) = to.as_chunks_mut::<SIZE>();
        let mut from = self.first;
        for slot in slots {
            *slot = *elements.get(usize::try_from(from).ok()?)?;
            from = from.wrapping_add_signed(self.step);
        }
        Some(())
    }
}
