//! Elements of a fixed size that are copied together.

/// Elements of a fixed size at equal distances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StridedElements<'a> {
    /// The buffer that contains them.
    pub(crate) bytes: &'a [u8],
    /// The index of the first element in the buffer.
    pub(crate) first: u64,
    /// The distance to the next, in elements.
    pub(crate) step: i64,
    /// The number of elements.
    pub(crate) count: u64,
}

/// Rows of consecutive elements of a fixed size, at equal distances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ElementRows<'a> {
    /// The buffer that contains them.
    pub(crate) bytes: &'a [u8],
    /// The index of the first element in the buffer.
    pub(crate) first: u64,
    /// The number of elements of a row.
    pub(crate) len: u64,
    /// The distance to the next row, in elements.
    pub(crate) step: i64,
    /// The number of rows.
    pub(crate) rows: u64,
}

impl ElementRows<'_> {
    /// The bytes of the first row.
    pub(super) fn row(&self, size: usize) -> Option<&[u8]> {
        let start = usize::try_from(self.first).ok()?.checked_mul(size)?;
        let len = usize::try_from(self.len).ok()?.checked_mul(size)?;
        self.bytes.get(start..start.checked_add(len)?)
    }

    /// The rows after the first `count`.
    pub(super) fn after(self, count: u64) -> Option<Self> {
        let rows = self.rows.checked_sub(count)?;
        if rows == 0 {
            return Some(Self { rows, ..self });
        }
        let distance = self.step.checked_mul(i64::try_from(count).ok()?)?;
        Some(Self { first: self.first.checked_add_signed(distance)?, rows, ..self })
    }

    /// Copies the first `count` rows to `to`, where they are `out_step` elements apart.
    pub(super) fn copy_to(&self, to: &mut [u8], [out_step, count]: [u64; 2], size: usize) -> Option<()> {
        let bytes = |elements: u64| usize::try_from(elements).ok()?.checked_mul(size);
        let (len, apart) = (bytes(self.len)?, bytes(out_step)?.max(1));
        let step = isize::try_from(self.step).ok()?.checked_mul(isize::try_from(size).ok()?)?;
        let mut from = bytes(self.first)?;
        for row in to.chunks_mut(apart).take(usize::try_from(count).ok()?) {
            row.get_mut(..len)?.copy_from_slice(self.bytes.get(from..from.checked_add(len)?)?);
            from = from.wrapping_add_signed(step);
        }
        Some(())
    }
}

impl StridedElements<'_> {
    /// The elements after the first `count`.
    pub(super) fn after(self, count: u64) -> Option<Self> {
        let left = self.count.checked_sub(count)?;
        if left == 0 {
            return Some(Self { count: left, ..self });
        }
        let distance = self.step.checked_mul(i64::try_from(count).ok()?)?;
        Some(Self { first: self.first.checked_add_signed(distance)?, count: left, ..self })
    }

    /// Copies as many elements as fit into `to`.
    #[inline]
    pub(super) fn copy_to(&self, to: &mut [u8], size: usize) -> Option<()> {
        match size {
            1 => self.copy_sized::<1>(to),
            2 => self.copy_sized::<2>(to),
            4 => self.copy_sized::<4>(to),
            8 => self.copy_sized::<8>(to),
            16 => self.copy_sized::<16>(to),
            _ => {
                let mut from = self.first;
                for slot in to.chunks_exact_mut(size) {
                    let start = usize::try_from(from).ok()?.checked_mul(size)?;
                    slot.copy_from_slice(self.bytes.get(start..start.checked_add(size)?)?);
                    from = from.wrapping_add_signed(self.step);
                }
                Some(())
            }
        }
    }

    /// [`copy_to`](Self::copy_to) with a size known at compile time, so that each copy is one move.
    #[inline]
    fn copy_sized<const SIZE: usize>(&self, to: &mut [u8]) -> Option<()> {
        let (elements, _) = self.bytes.as_chunks::<SIZE>();
        let (slots, _) = to.as_chunks_mut::<SIZE>();
        let mut from = self.first;
        for slot in slots {
            *slot = *elements.get(usize::try_from(from).ok()?)?;
            from = from.wrapping_add_signed(self.step);
        }
        Some(())
    }
}
