//! Watermarks of the visible state.

/// A number that identifies the visible state of a store. Every commit changes it; watermarks have no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Watermark(u64);

impl Watermark {
    /// The watermark with this number. Stores call this.
    pub fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The watermark as a number.
    pub fn as_u64(self) -> u64 {
        self.0
    }
}
