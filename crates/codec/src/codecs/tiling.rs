//! The inner chunks of a shard as tiles of one shape.

use bytes::Bytes;

use crate::{ChunkRepresentation, CodecError, Elements, VariableBuilder, VariableElements, filled};

const NAME: &str = "sharding_indexed";

/// The tiles of a chunk, in C order.
#[derive(Debug)]
pub(super) struct Tiles {
    outer: Vec<u64>,
    shape: Vec<u64>,
    next: Option<Vec<u64>>,
}

/// The offset and the shape of a tile.
#[derive(Debug)]
pub(super) struct Tile {
    origin: Vec<u64>,
    shape: Vec<u64>,
}

/// A chunk that is assembled from its tiles.
#[derive(Debug)]
pub(super) struct ChunkAssembler<'a> {
    chunk: &'a ChunkRepresentation,
    elements: AssembledElements,
}

#[derive(Debug)]
enum AssembledElements {
    Fixed {
        bytes: Vec<u8>,
        size: usize,
    },
    /// For each element of the chunk, the index of its source and its index in that source.
    Variable {
        sources: Vec<VariableElements>,
        slots: Vec<(usize, usize)>,
        remaining: u64,
    },
}

impl Tiles {
    /// The tiles of this shape; `None` unless the shape has the chunk's rank and no extent of 0.
    pub(super) fn new(chunk: &ChunkRepresentation, shape: &[u64]) -> Option<Self> {
        let outer = chunk.shape().to_vec();
        let is_valid = outer.len() == shape.len() && !shape.contains(&0);
        is_valid.then(|| Self { next: Some(vec![0; outer.len()]), outer, shape: shape.to_vec() })
    }

    /// The next tile; `None` after the last.
    pub(super) fn next_tile(&mut self) -> Option<Tile> {
        let origin = self.next.take()?;
        let mut following = origin.clone();
        for ((position, &outer), &extent) in following.iter_mut().zip(&self.outer).zip(&self.shape).rev() {
            *position = position.checked_add(extent)?;
            if *position < outer {
                self.next = Some(following);
                break;
            }
            *position = 0;
        }
        Some(Tile { origin, shape: self.shape.clone() })
    }
}

impl Tile {
    /// Calls `visit` with the offset of each row of the tile in the chunk and in the tile, and with its number of
    /// elements.
    fn rows(
        &self,
        chunk: &[u64],
        mut visit: impl FnMut(usize, usize, usize) -> Result<(), CodecError>,
    ) -> Result<(), CodecError> {
        let (len, rows) = match self.shape.split_last() {
            Some((&len, rows)) => (len, rows),
            None => (1, &[][..]),
        };
        let mut row = vec![0_u64; rows.len()];
        let mut in_tile = 0_u64;
        loop {
            let positions = row.iter().chain([&0]).zip(&self.origin).map(|(&inner, &origin)| origin + inner);
            let in_chunk = positions.zip(chunk).fold(0_u64, |offset, (position, &extent)| offset * extent + position);
            visit(to_usize(in_chunk)?, to_usize(in_tile)?, to_usize(len)?)?;
            in_tile += len;
            let mut advanced = false;
            for (position, &extent) in row.iter_mut().zip(rows).rev() {
                *position += 1;
                if *position < extent {
                    advanced = true;
                    break;
                }
                *position = 0;
            }
            if !advanced {
                return Ok(());
            }
        }
    }
}

impl<'a> ChunkAssembler<'a> {
    /// Creates a chunk without tiles. Allocates its fixed size; fails if elements of variable length would exceed
    /// `budget`.
    pub(super) fn new(chunk: &'a ChunkRepresentation, budget: u64) -> Result<Self, CodecError> {
        let elements = match (chunk.fixed_size(), chunk.data_type().fixed_size()) {
            (Some(len), Some(size)) => AssembledElements::Fixed { bytes: filled(0, to_usize(len)?), size },
            _ => {
                let cost = chunk.num_elements().saturating_mul(size_of::<(usize, usize)>() as u64);
                let remaining = budget.checked_sub(cost).ok_or(CodecError::BudgetExceeded { codec: NAME, budget })?;
                AssembledElements::Variable {
                    sources: Vec::new(),
                    slots: vec![(0, 0); to_usize(chunk.num_elements())?],
                    remaining,
                }
            }
        };
        Ok(Self { chunk, elements })
    }

    /// The memory budget of the next tile, for elements of variable length, in bytes.
    pub(super) fn remaining(&self) -> u64 {
        match &self.elements {
            AssembledElements::Fixed { bytes, .. } => bytes.len() as u64,
            AssembledElements::Variable { remaining, .. } => *remaining,
        }
    }

    /// Inserts the elements of a tile.
    pub(super) fn insert(&mut self, tile: &Tile, elements: Elements) -> Result<(), CodecError> {
        let chunk = self.chunk.shape();
        match (&mut self.elements, elements) {
            // There may be any number of elements without bytes.
            (AssembledElements::Fixed { size: 0, .. }, Elements::Fixed(_)) => Ok(()),
            (AssembledElements::Fixed { bytes, size }, Elements::Fixed(source)) => {
                let size = *size;
                tile.rows(chunk, |to, from, len| {
                    let from = source.get(from * size..(from + len) * size).ok_or_else(mismatch)?;
                    bytes.get_mut(to * size..(to + len) * size).ok_or_else(mismatch)?.copy_from_slice(from);
                    Ok(())
                })
            }
            (AssembledElements::Variable { sources, slots, remaining }, Elements::Variable(source)) => {
                *remaining = remaining
                    .checked_sub(source.memory_size())
                    .ok_or(CodecError::BudgetExceeded { codec: NAME, budget: *remaining })?;
                let number = sources.len();
                sources.push(source);
                tile.rows(chunk, |to, from, len| {
                    let slots = slots.get_mut(to..to + len).ok_or_else(mismatch)?;
                    slots.iter_mut().zip(from..).for_each(|(slot, from)| *slot = (number, from));
                    Ok(())
                })
            }
            _ => Err(mismatch()),
        }
    }

    /// Inserts a tile of fill values.
    pub(super) fn insert_fill_value(&mut self, tile: &Tile) -> Result<(), CodecError> {
        let insert_fill_value = self.chunk.fill_value();
        if let AssembledElements::Fixed { bytes, size } = &mut self.elements {
            let size = *size;
            if size == 0 {
                return Ok(());
            }
            return tile.rows(self.chunk.shape(), |to, _, len| {
                let row = bytes.get_mut(to * size..(to + len) * size).ok_or_else(mismatch)?;
                row.chunks_exact_mut(size).zip(std::iter::repeat(insert_fill_value)).for_each(
                    |(slot, insert_fill_value)| {
                        let len = insert_fill_value.len().min(slot.len());
                        slot.iter_mut().zip(insert_fill_value).take(len).for_each(|(slot, &byte)| *slot = byte);
                    },
                );
                Ok(())
            });
        }
        let elements = tile.shape.iter().product::<u64>();
        let mut fill_elements = VariableBuilder::new(self.remaining());
        for _ in 0..elements {
            let budget = self.remaining();
            fill_elements.push(insert_fill_value).map_err(|_| CodecError::BudgetExceeded { codec: NAME, budget })?;
        }
        self.insert(tile, Elements::Variable(fill_elements.finish()))
    }

    /// The assembled chunk.
    pub(super) fn finish(self) -> Result<Elements, CodecError> {
        match self.elements {
            AssembledElements::Fixed { bytes, .. } => Ok(Elements::Fixed(bytes.into())),
            AssembledElements::Variable { sources, slots, remaining } => {
                let mut all = VariableBuilder::new(u64::MAX);
                let mut available = remaining;
                for (source, from) in slots {
                    let element = sources.get(source).and_then(|source| source.get(from)).ok_or_else(mismatch)?;
                    let exceeded = CodecError::BudgetExceeded { codec: NAME, budget: remaining };
                    available = available.checked_sub(element.len() as u64).ok_or(exceeded)?;
                    all.push(element).map_err(|_| mismatch())?;
                }
                Ok(Elements::Variable(all.finish()))
            }
        }
    }
}

/// The elements of one tile of a chunk.
pub(super) fn extract(elements: &Elements, chunk: &ChunkRepresentation, tile: &Tile) -> Result<Elements, CodecError> {
    match elements {
        Elements::Fixed(bytes) => {
            let size = chunk.data_type().fixed_size().ok_or_else(mismatch)?;
            if size == 0 {
                return Ok(Elements::Fixed(Bytes::new()));
            }
            let mut extract = Vec::new();
            tile.rows(chunk.shape(), |from, _, len| {
                extract.extend_from_slice(bytes.get(from * size..(from + len) * size).ok_or_else(mismatch)?);
                Ok(())
            })?;
            Ok(Elements::Fixed(Bytes::from(extract)))
        }
        Elements::Variable(elements) => {
            let mut extract = VariableBuilder::new(u64::MAX);
            tile.rows(chunk.shape(), |from, _, len| {
                (from..from + len)
                    .try_for_each(|from| extract.push(elements.get(from).ok_or_else(mismatch)?).map_err(|_| mismatch()))
            })?;
            Ok(Elements::Variable(extract.finish()))
        }
    }
}

fn to_usize(number: u64) -> Result<usize, CodecError> {
    usize::try_from(number).map_err(|_| mismatch())
}

fn mismatch() -> CodecError {
    CodecError::Malformed { codec: NAME, reason: "an inner chunk does not match the grid of its shard" }
}
