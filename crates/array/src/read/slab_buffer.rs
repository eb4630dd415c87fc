//! The buffer in which a slab is assembled, in segments of consecutive elements.
//!
//! Many jobs write into one slab at the same time. Each segment has a lock of its own, held for one copy at a time, so
//! that jobs of neighbouring chunks seldom contend. A segment is returned as soon as it is full, so that an answer
//! begins before all chunks of its first slab are decoded.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::OwnedSemaphorePermit;
use zarrd_codec::{Elements, VariableBuilder};

use super::runs::{ElementRows, StridedElements};
use crate::{
    buffer_pool::{BufferPool, ByteCounter, with_permit},
    memory::claim::Permit,
};

/// The unit of a segment's memory permit, in bytes.
pub(crate) const PERMIT_UNIT: u64 = 1 << 10;

/// The target size of a segment in bytes: small enough for the first to be full early, large enough for a write to a
/// socket.
const SEGMENT_BYTES: u64 = 128 << 10;

/// The target size of a segment of a small slab, which is soon full anyway.
const SMALL_SLAB_SEGMENT_BYTES: u64 = 1 << 20;

/// The size up to which a slab is small, in bytes.
const SMALL_SLAB_BYTES: u64 = 4 << 20;

/// The size of a segment's slot for an element of variable length, in addition to the element's bytes.
pub(crate) const VARIABLE_SLOT_SIZE: u64 = size_of::<Box<[u8]>>() as u64;

/// The division of a slab into segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentLayout {
    elements: u64,
    /// The number of consecutive elements for one index of the dimensions before the one that is divided.
    block: u64,
    /// The number of elements of a segment; the last of each block may have fewer.
    segment: u64,
    /// The number of segments of a block.
    segments_per_block: u64,
}

/// A slab being assembled.
#[derive(Debug)]
pub(crate) struct SlabBuffer {
    layout: SegmentLayout,
    /// The size of an element in bytes; `None` for variable length.
    size: Option<usize>,
    segments: Vec<Mutex<Segment>>,
    resources: BufferResources,
}

/// The resources that all slabs of a read share.
#[derive(Clone, Debug)]
pub(crate) struct BufferResources {
    pub(crate) buffers: Arc<BufferPool>,
    /// The bytes of assembled elements of variable length that were not yet taken.
    pub(crate) retained: Arc<ByteCounter>,
    /// The memory of the read, held until the last use of what it returned.
    pub(crate) memory: Option<Arc<Permit>>,
}

/// A segment being assembled.
#[derive(Debug, Default)]
enum Segment {
    /// Nothing is written yet, and no memory is allocated.
    Empty { permit: Option<OwnedSemaphorePermit> },
    Open {
        cells: SegmentData,
        /// The number of elements written. Each is written exactly once, so the segment is full when all are counted.
        written: u64,
        _permit: Option<OwnedSemaphorePermit>,
    },
    #[default]
    Taken,
}

#[derive(Debug)]
enum SegmentData {
    Fixed(Vec<u8>),
    /// All elements of the segment, shared with the decoded chunk.
    Shared(Bytes),
    Variable(Vec<Box<[u8]>>),
}

/// A cursor that writes into a slab, and keeps the segment of its last write locked.
pub(crate) struct SlabCursor<'a> {
    buffer: &'a SlabBuffer,
    locked: Option<LockedSegment<'a>>,
}

/// A locked segment.
struct LockedSegment<'a> {
    number: usize,
    /// The position of its first element in the slab.
    start: u64,
    /// The number of its elements.
    len: u64,
    segment: MutexGuard<'a, Segment>,
}

/// The reason why an element cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScatterError {
    /// The position does not exist or is not being assembled: a bug in this crate, detected before wrong elements are
    /// returned.
    Internal,
    /// Elements of variable length exceed the memory of the read.
    OverBudget,
}

impl SegmentLayout {
    /// Divides a slab with these extents, whose elements have `size` bytes. `chunk` is the extent of chunks along a
    /// dimension of the output.
    pub(crate) fn new(extents: &[u64], size: u64, chunk: impl Fn(usize) -> u64) -> Self {
        let elements = extents.iter().fold(1_u64, |product, &extent| product.saturating_mul(extent));
        let segment =
            if elements.saturating_mul(size) <= SMALL_SLAB_BYTES { SMALL_SLAB_SEGMENT_BYTES } else { SEGMENT_BYTES };
        let fit = (segment / size.max(1)).max(1);
        let mut after = 1_u64;
        for (axis, &extent) in extents.iter().enumerate().rev() {
            let block = after.saturating_mul(extent);
            if block > fit || axis == 0 {
                let most = (fit / after.max(1)).max(1);
                let chunk = chunk(axis).max(1);
                let count = if chunk <= most { most - most % chunk } else { most };
                let count = count.min(extent.max(1));
                return Self { elements, block, segment: count * after, segments_per_block: extent.div_ceil(count) };
            }
            after = block;
        }
        Self { elements, block: elements, segment: elements, segments_per_block: 1 }
    }

    /// The memory of a slab with elements of `size` bytes, in units of [`PERMIT_UNIT`].
    pub(crate) fn units(&self, size: Option<usize>) -> u64 {
        (0..self.segments()).map(|segment| self.segment_units(segment, size)).sum()
    }

    fn segment_units(&self, segment: u64, size: Option<usize>) -> u64 {
        let per_element = size.map_or(VARIABLE_SLOT_SIZE, |size| size as u64);
        self.len(segment).saturating_mul(per_element).div_ceil(PERMIT_UNIT)
    }

    fn segments(&self) -> u64 {
        (self.elements / self.block.max(1)).saturating_mul(self.segments_per_block)
    }

    /// The segment of an element, and the element's index in it.
    fn segment_of(&self, element: u64) -> (u64, u64) {
        let (block, within) = (element / self.block.max(1), element % self.block.max(1));
        (block * self.segments_per_block + within / self.segment.max(1), within % self.segment.max(1))
    }

    /// The number of elements of a segment.
    fn len(&self, segment: u64) -> u64 {
        let start = (segment % self.segments_per_block.max(1)).saturating_mul(self.segment);
        self.block.saturating_sub(start).min(self.segment)
    }
}

impl SlabBuffer {
    /// A slab with elements of `size` bytes, or of variable length. Segments allocate their memory when they are first
    /// written to. `permit` covers [all of it](SegmentLayout::units); each segment releases its part when it is taken.
    pub(crate) fn new(
        layout: SegmentLayout,
        size: Option<usize>,
        mut permit: OwnedSemaphorePermit,
        supplies: BufferResources,
    ) -> Self {
        let segment = |segment| {
            let units = usize::try_from(layout.segment_units(segment, size)).unwrap_or(usize::MAX);
            Mutex::new(Segment::Empty { permit: permit.split(units) })
        };
        let segments = (0..layout.segments()).map(segment).collect();
        Self { layout, size, segments, resources: supplies }
    }

    /// The number of segments.
    pub(crate) fn segments(&self) -> usize {
        self.segments.len()
    }

    /// The size of an element in bytes; `None` for variable length.
    pub(crate) fn size(&self) -> Option<usize> {
        self.size
    }

    /// Takes a segment if it is full.
    pub(crate) fn take(&self, segment: usize) -> Option<Result<Elements, ScatterError>> {
        let mut state = self.segments.get(segment)?.lock();
        let len = self.layout.len(segment as u64);
        if !matches!(*state, Segment::Open { written, .. } if written >= len) {
            return None;
        }
        // The segment's permit is released for the next slab as soon as it is taken, so no assembly waits for a client.
        let Segment::Open { cells, written, .. } = std::mem::take(&mut *state) else { return None };
        drop(state);
        let memory = self.resources.memory.clone();
        if written > len {
            return Some(Err(ScatterError::Internal));
        }
        Some(match cells {
            SegmentData::Fixed(buffer) => Ok(Elements::Fixed(self.resources.buffers.into_bytes(buffer, memory))),
            SegmentData::Shared(bytes) => Ok(Elements::Fixed(with_permit(bytes, memory))),
            SegmentData::Variable(cells) => self.collect(cells),
        })
    }

    /// A cursor to write with.
    pub(crate) fn cursor(&self) -> SlabCursor<'_> {
        SlabCursor { buffer: self, locked: None }
    }

    /// The memory of a segment.
    fn cells(&self, segment: usize) -> SegmentData {
        let len = usize::try_from(self.layout.len(segment as u64)).unwrap_or_default();
        match self.size {
            Some(size) => SegmentData::Fixed(self.resources.buffers.take(len.saturating_mul(size))),
            None => SegmentData::Variable(vec![Box::default(); len]),
        }
    }

    fn collect(&self, cells: Vec<Box<[u8]>>) -> Result<Elements, ScatterError> {
        let mut elements = VariableBuilder::new(u64::MAX);
        for cell in cells {
            elements.push(&cell).map_err(|_| ScatterError::OverBudget)?;
            self.resources.retained.release(cell.len() as u64);
        }
        Ok(Elements::Variable(elements.finish()))
    }
}

impl<'a> SlabCursor<'a> {
    /// Writes consecutive elements of a fixed size, in order, to the positions from `out` on.
    #[inline]
    pub(crate) fn write(&mut self, out: u64, bytes: &[u8]) -> Result<(), ScatterError> {
        let size = self.buffer.size.unwrap_or(0);
        let mut out = out;
        let mut bytes = bytes;
        while !bytes.is_empty() {
            let (target, written) = self.segment_bytes(out, size)?;
            let count = target.len().min(bytes.len());
            let (now, later) = bytes.split_at_checked(count).ok_or(ScatterError::Internal)?;
            target.get_mut(..count).ok_or(ScatterError::Internal)?.copy_from_slice(now);
            let elements = (count / size) as u64;
            *written += elements;
            out += elements;
            bytes = later;
        }
        Ok(())
    }

    /// Writes rows to the positions from `out` on, each `out_step` after the one before.
    pub(crate) fn write_rows(&mut self, out: u64, out_step: u64, all: ElementRows<'_>) -> Result<(), ScatterError> {
        let size = self.buffer.size.unwrap_or(0);
        let (mut out, mut left) = (out, all);
        while left.rows > 0 {
            let (target, written) = self.segment_bytes(out, size)?;
            // The rows that end in this segment.
            let free = (target.len() / size) as u64;
            let more = free.checked_sub(left.len).map(|after| after.checked_div(out_step).unwrap_or(0));
            let count = more.map_or(0, |more| more.saturating_add(1)).min(left.rows);
            match count {
                0 => self.write(out, left.row(size).ok_or(ScatterError::Internal)?)?,
                _ => {
                    left.copy_to(target, [out_step, count], size).ok_or(ScatterError::Internal)?;
                    *written += count * left.len;
                }
            }
            let count = count.max(1);
            left = left.after(count).ok_or(ScatterError::Internal)?;
            out = out.saturating_add(out_step.saturating_mul(count));
        }
        Ok(())
    }

    /// As [`write`](Self::write), but segments that the bytes fill entirely share them instead of copying.
    pub(crate) fn install(&mut self, out: u64, bytes: &Bytes) -> Result<(), ScatterError> {
        let size = self.buffer.size.filter(|&size| size > 0).ok_or(ScatterError::Internal)?;
        let (mut out, mut start) = (out, 0_usize);
        while start < bytes.len() {
            let (number, first) = self.buffer.layout.segment_of(out);
            let elements = self.buffer.layout.len(number).saturating_sub(first);
            let free_bytes = usize::try_from(elements).ok().and_then(|elements| elements.checked_mul(size));
            let count = free_bytes.ok_or(ScatterError::Internal)?.min(bytes.len() - start);
            if count == 0 {
                return Err(ScatterError::Internal);
            }
            let now = bytes.slice(start..start + count);
            match first == 0 && (count / size) as u64 == elements {
                true => self.install_segment(out, now, elements)?,
                false => self.write(out, &now)?,
            }
            out += (count / size) as u64;
            start += count;
        }
        Ok(())
    }

    fn install_segment(&mut self, out: u64, bytes: Bytes, elements: u64) -> Result<(), ScatterError> {
        self.lock(out)?;
        let locked = self.locked.as_mut().ok_or(ScatterError::Internal)?;
        let Segment::Empty { permit } = &mut *locked.segment else { return Err(ScatterError::Internal) };
        *locked.segment =
            Segment::Open { _permit: permit.take(), cells: SegmentData::Shared(bytes), written: elements };
        Ok(())
    }

    /// Writes elements of a fixed size at equal distances to the positions from `out` on.
    #[inline]
    pub(crate) fn write_strided(&mut self, out: u64, elements: StridedElements<'_>) -> Result<(), ScatterError> {
        let size = self.buffer.size.unwrap_or(0);
        let mut out = out;
        let mut left = elements;
        while left.count > 0 {
            let (target, written) = self.segment_bytes(out, size)?;
            let count = ((target.len() / size) as u64).min(left.count);
            let bytes = usize::try_from(count).map_err(|_| ScatterError::Internal)? * size;
            left.copy_to(target.get_mut(..bytes).ok_or(ScatterError::Internal)?, size).ok_or(ScatterError::Internal)?;
            *written += count;
            out += count;
            left = left.after(count).ok_or(ScatterError::Internal)?;
        }
        Ok(())
    }

    /// Writes `count` elements of no size, which are only counted.
    pub(crate) fn write_empty(&mut self, out: u64, count: u64) -> Result<(), ScatterError> {
        let (mut out, mut left) = (out, count);
        while left > 0 {
            let (number, first) = self.buffer.layout.segment_of(out);
            let now = self.buffer.layout.len(number).saturating_sub(first).min(left);
            let (Segment::Open { written, .. }, _) = self.segment_at(out)? else { return Err(ScatterError::Internal) };
            if now == 0 {
                return Err(ScatterError::Internal);
            }
            *written += now;
            out += now;
            left -= now;
        }
        Ok(())
    }

    /// Writes an element of variable length.
    pub(crate) fn write_variable(&mut self, out: u64, element: &[u8]) -> Result<(), ScatterError> {
        let retained = &self.buffer.resources.retained;
        if !retained.take(element.len() as u64) {
            return Err(ScatterError::OverBudget);
        }
        let (segment, first) = self.segment_at(out)?;
        let Segment::Open { cells: SegmentData::Variable(cells), written, .. } = segment else {
            return Err(ScatterError::Internal);
        };
        let cell = usize::try_from(first).ok().and_then(|first| cells.get_mut(first)).ok_or(ScatterError::Internal)?;
        *cell = element.into();
        *written += 1;
        Ok(())
    }

    /// The memory of a segment from `out` on, at least one element, and the segment's counter.
    #[inline]
    fn segment_bytes(&mut self, out: u64, size: usize) -> Result<(&mut [u8], &mut u64), ScatterError> {
        let (segment, first) = self.segment_at(out)?;
        let Segment::Open { cells: SegmentData::Fixed(buffer), written, .. } = segment else {
            return Err(ScatterError::Internal);
        };
        let first = usize::try_from(first).ok().and_then(|first| first.checked_mul(size));
        let bytes = first.and_then(|first| buffer.get_mut(first..)).ok_or(ScatterError::Internal)?;
        if size == 0 || bytes.len() < size { Err(ScatterError::Internal) } else { Ok((bytes, written)) }
    }

    /// The segment of an element, with memory, and the element's index in it.
    #[inline]
    fn segment_at(&mut self, out: u64) -> Result<(&mut Segment, u64), ScatterError> {
        // Most copies go to the same segment as the one before, and a division costs more than a short copy.
        let within =
            self.locked.as_ref().and_then(|locked| out.checked_sub(locked.start).filter(|&first| first < locked.len));
        let first = match within {
            Some(first) => first,
            None => self.lock(out)?,
        };
        let locked = self.locked.as_mut().ok_or(ScatterError::Internal)?;
        if let Segment::Empty { permit } = &mut *locked.segment {
            *locked.segment =
                Segment::Open { _permit: permit.take(), cells: self.buffer.cells(locked.number), written: 0 };
        }
        Ok((&mut *locked.segment, first))
    }

    /// Locks the segment of an element; returns the element's index in it.
    fn lock(&mut self, out: u64) -> Result<u64, ScatterError> {
        let (number, first) = self.buffer.layout.segment_of(out);
        let len = self.buffer.layout.len(number);
        let number = usize::try_from(number).map_err(|_| ScatterError::Internal)?;
        // Unlock one segment before locking another, so that cursors cannot deadlock.
        self.locked = None;
        let segment = self.buffer.segments.get(number).ok_or(ScatterError::Internal)?.lock();
        self.locked = Some(LockedSegment { number, start: out.saturating_sub(first), len, segment });
        Ok(first)
    }
}
