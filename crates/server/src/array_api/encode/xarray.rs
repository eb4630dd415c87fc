//! `format=xarray`: the JSON of `xarray.DataArray.to_dict`, with the data types of elements and coordinates as `dtype`.
//! Values are written so that `DataArray.from_dict(answer).astype(answer["dtype"])` has them, like the coordinates. As with
//! `to_dict`, a list cannot tell the other extents of an array whose first dimension is empty.

use std::sync::Arc;

use super::{
    encoder::{BLOCK_SIZE, ElementEncoder, Progress},
    json::JsonEncoder,
    labels::AnswerLabels,
    slice::ArraySlice,
};

/// Encodes elements as JSON after their coordinates.
pub(super) struct XarrayEncoder {
    labels: Option<Arc<AnswerLabels>>,
    /// The number of bytes of the coordinates that are written.
    written: usize,
    elements: JsonEncoder,
}

impl XarrayEncoder {
    pub(super) fn new(slice: &ArraySlice) -> Self {
        Self { labels: slice.labels.clone(), written: 0, elements: JsonEncoder::for_numpy(slice) }
    }
}

impl ElementEncoder for XarrayEncoder {
    fn write_header(&mut self, out: &mut Vec<u8>) -> Progress {
        let head = self.labels.as_ref().map_or(&[][..], |labels| &labels.head);
        let rest = head.get(self.written..).unwrap_or_default();
        let block = rest.get(..rest.len().min(BLOCK_SIZE)).unwrap_or_default();
        out.extend_from_slice(block);
        self.written = self.written.saturating_add(block.len());
        if block.len() < rest.len() { Progress::Partial } else { Progress::Complete }
    }

    fn write_element(&mut self, element: &[u8], out: &mut Vec<u8>) {
        self.elements.write_element(element, out);
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.elements.finish(out);
        out.push(b'}');
    }
}
