//! Encoders that write elements one after the other.

/// How large blocks become that are written element by element, and what is gathered into one answer.
pub(in crate::array_api) const BLOCK_SIZE: usize = 64 << 10;
/// How much of what comes before the first element was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::array_api) enum Progress {
    /// A part of it, and there is more.
    Partial,
    /// All that was left.
    Complete,
}

/// Writes elements one after the other.
pub(in crate::array_api) trait ElementEncoder: Send {
    /// Writes what comes before the first element, or the next part of it where that is long.
    fn write_header(&mut self, _out: &mut Vec<u8>) -> Progress {
        Progress::Complete
    }

    /// One element.
    fn write_element(&mut self, element: &[u8], out: &mut Vec<u8>);

    /// What comes after the last element.
    fn finish(&mut self, _out: &mut Vec<u8>) {}
}
