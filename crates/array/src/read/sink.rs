//! Destinations of decoded elements.

use zarrd_codec::Elements;

use super::context::ReadContext;
use crate::{error::ArrayError, grid::projection::ElementSelection};

/// A destination of the elements of a read, which come chunk by chunk and in any order.
pub(crate) trait ElementSink: std::fmt::Debug + Send + Sync {
    /// Takes the selected elements of a decoded unit, which has this shape.
    fn write(
        &self,
        source: &ReadContext,
        shape: &[u64],
        selection: &ElementSelection,
        elements: &Elements,
    ) -> Result<(), ArrayError>;

    /// Takes the fill value for each of the selected elements.
    fn write_fill_value(&self, source: &ReadContext, selection: &ElementSelection) -> Result<(), ArrayError>;

    /// The work of taking elements, in bytes that could be copied instead.
    fn write_work(&self, source: &ReadContext, selection: &ElementSelection) -> u64 {
        source.bytes_of(selection)
    }

    /// The number of units that are taken at the same time, at most; others wait for them.
    fn most_writers(&self) -> usize {
        usize::MAX
    }

    /// The work of taking fill values, in bytes that could be copied instead.
    fn fill_work(&self, source: &ReadContext, selection: &ElementSelection) -> u64 {
        source.bytes_of(selection)
    }
}
