//! The elements of a chunk in memory.

use bytes::Bytes;

/// Elements in C order, in the memory layout of their [`ElementType`](zarrd_meta::data_type::ElementType).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Consecutive elements of a fixed size, each word little-endian.
    Fixed(Bytes),
    /// Elements of variable length.
    Variable(VariableElements),
}

/// Elements of variable length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableElements {
    /// The end of each element in `data`, in non-decreasing order; the last is the length of `data`.
    ends: Vec<u64>,
    data: Bytes,
}

/// Collects elements of variable length, up to a memory budget.
#[derive(Debug)]
pub struct VariableBuilder {
    ends: Vec<u64>,
    data: Vec<u8>,
    budget: u64,
}

/// The budget is too small for an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetExceeded;

/// The overhead per element of variable length, in bytes.
const OVERHEAD_PER_ELEMENT: u64 = size_of::<u64>() as u64;

impl Elements {
    /// The size in memory, in bytes.
    pub fn memory_size(&self) -> u64 {
        match self {
            Self::Fixed(bytes) => bytes.len() as u64,
            Self::Variable(elements) => elements.memory_size(),
        }
    }

    /// True if every element is bitwise equal to `element`. Always true for elements without bytes.
    pub fn all_equal(&self, element: &[u8]) -> bool {
        match self {
            Self::Fixed(_) if element.is_empty() => true,
            // If the bytes equal themselves shifted by one element, all elements are equal.
            Self::Fixed(bytes) => match bytes.get(..element.len()) {
                Some(first) => {
                    first == element && bytes.get(element.len()..) == bytes.get(..bytes.len() - element.len())
                }
                None => bytes.is_empty(),
            },
            Self::Variable(elements) => elements.iter().all(|one| one == element),
        }
    }
}

impl VariableElements {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// An element's bytes.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = usize::try_from(*self.ends.get(index)?).ok()?;
        let start = match index.checked_sub(1) {
            Some(before) => usize::try_from(*self.ends.get(before)?).ok()?,
            None => 0,
        };
        self.data.get(start..end)
    }

    /// All elements in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }

    /// The size in memory, in bytes.
    pub fn memory_size(&self) -> u64 {
        (self.data.len() as u64).saturating_add(OVERHEAD_PER_ELEMENT.saturating_mul(self.ends.len() as u64))
    }
}

impl VariableBuilder {
    /// Creates a builder for elements that take at most `budget` bytes of memory.
    pub fn new(budget: u64) -> Self {
        Self { ends: Vec::new(), data: Vec::new(), budget }
    }

    /// Takes memory for so many bytes of elements at once, if the budget allows.
    pub fn reserve(&mut self, bytes: u64) {
        let bytes = bytes.min(self.budget).saturating_sub(self.data.len() as u64);
        self.data.reserve_exact(usize::try_from(bytes).unwrap_or(0));
    }

    /// Appends an element.
    pub fn push(&mut self, element: &[u8]) -> Result<(), BudgetExceeded> {
        let cost = OVERHEAD_PER_ELEMENT.saturating_add(element.len() as u64);
        self.budget = self.budget.checked_sub(cost).ok_or(BudgetExceeded)?;
        self.data.extend_from_slice(element);
        self.ends.push(self.data.len() as u64);
        Ok(())
    }

    /// The collected elements.
    pub fn finish(self) -> VariableElements {
        VariableElements { ends: self.ends, data: self.data.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_equal_compares_every_element() {
        let fixed = |bytes: &'static [u8]| Elements::Fixed(Bytes::from_static(bytes));
        assert!(fixed(b"ababab").all_equal(b"ab") && fixed(b"").all_equal(b"ab") && fixed(b"ab").all_equal(b"ab"));
        assert!(
            !fixed(b"ababac").all_equal(b"ab")
                && !fixed(b"bababa").all_equal(b"ab")
                && !fixed(b"acacac").all_equal(b"ab")
        );
        assert!(fixed(b"").all_equal(b""));
        let mut builder = VariableBuilder::new(100);
        builder.push(b"a").unwrap();
        assert!(Elements::Variable(builder.finish()).all_equal(b"a"));
    }

    #[test]
    fn builder_rejects_elements_beyond_its_budget() {
        let mut builder = VariableBuilder::new(3 * 8 + 5);
        for element in [&b"ab"[..], b"", b"cde"] {
            builder.push(element).unwrap();
        }
        assert_eq!(builder.push(b""), Err(BudgetExceeded));
        let elements = builder.finish();
        assert_eq!(elements.iter().collect::<Vec<_>>(), [&b"ab"[..], b"", b"cde"]);
        assert_eq!((elements.len(), elements.get(3), elements.memory_size()), (3, None, 29));
    }
}
