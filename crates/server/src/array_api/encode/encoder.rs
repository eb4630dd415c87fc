//! Encoders that write element by element.

/// The target size of encoded blocks, and the limit up to which a response is buffered completely, in bytes.
pub(in crate::array_api) const BLOCK_SIZE: usize = 64 << 10;
/// The progress of writing a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::array_api) enum Progress {
    /// More of it is left to write.
    Partial,
    /// The header is complete.
    Complete,
}

/// Encodes elements one at a time.
pub(in crate::array_api) trait ElementEncoder: Send {
    /// Writes the text before the first element, or the next block of it.
    fn write_header(&mut self, _out: &mut Vec<u8>) -> Progress {
        Progress::Complete
    }

    /// Writes one element.
    fn write_element(&mut self, element: &[u8], out: &mut Vec<u8>);

    /// Writes the text after the last element.
    fn finish(&mut self, _out: &mut Vec<u8>) {}
}
