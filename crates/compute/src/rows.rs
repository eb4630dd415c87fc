//! Rows of elements at equal distances.

/// Rows of as many bytes each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    bytes: &'a [u8],
    width: usize,
    /// The bytes from the start of a row to that of the next one.
    apart: usize,
    count: usize,
}

impl<'a> Rows<'a> {
    /// A single row.
    pub(crate) fn one(bytes: &'a [u8]) -> Self {
        Self { bytes, width: bytes.len(), apart: bytes.len(), count: 1 }
    }

    /// Rows of `width` bytes, of which each is `apart` from the one before; `None` if some are not in the buffer.
    pub(crate) fn new(bytes: &'a [u8], width: usize, (apart, count): (usize, usize)) -> Option<Self> {
        let last = apart.checked_mul(count.checked_sub(1)?)?;
        bytes.get(..last.checked_add(width)?).map(|bytes| Self { bytes, width, apart, count })
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = &'a [u8]> + Clone {
        (0..self.count).map_while(move |row| {
            let start = row.checked_mul(self.apart)?;
            self.bytes.get(start..start.checked_add(self.width)?)
        })
    }

    /// The bytes of a row.
    pub(crate) fn width(self) -> usize {
        self.width
    }

    /// The number of rows.
    pub(crate) fn count(self) -> usize {
        self.count
    }

    /// The same rows without other bytes of them than those from `start` to `end`.
    pub(crate) fn part(self, start: usize, end: usize) -> Self {
        let end = end.min(self.width);
        let start = start.min(end);
        Self { bytes: self.bytes.get(start..).unwrap_or_default(), width: end - start, ..self }
    }

    /// The same rows, at most `count` at a time.
    pub(crate) fn bands(self, count: usize) -> impl Iterator<Item = Self> {
        let count = count.max(1);
        (0..self.count).step_by(count).map(move |first| {
            let bytes = self.bytes.get(first.saturating_mul(self.apart)..).unwrap_or_default();
            Self { bytes, count: count.min(self.count - first), ..self }
        })
    }

    /// Parts of all rows, of at most `width` bytes each.
    pub(crate) fn columns(self, width: usize) -> impl Iterator<Item = Self> {
        let width = width.max(1);
        (0..self.width).step_by(width).map(move |start| self.part(start, start.saturating_add(width)))
    }
}
