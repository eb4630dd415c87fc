//! Watermarks of a store's commits.

/// A number for the visible state of a store: another one after every commit. Watermarks have no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Watermark(u64);

impl Watermark {
    /// Watermarks are made by stores.
    pub fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub fn as_u64(self) -> u64 {
        self.0
    }
}
