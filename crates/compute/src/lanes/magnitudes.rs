//! The magnitudes of some `f32`, which tell whether sums of them are exact.

/// The bits of the significand of an `f32`.
const SIGNIFICAND: i32 = 24;
/// The bits of the significand of an `f64`.
const WIDE_SIGNIFICAND: i32 = 53;

/// The numbers that are read at a time.
pub(super) const LANES: usize = 8;

/// The smallest and the largest magnitude of numbers that are not NaN, of which each lane has some.
#[derive(Clone, Copy, Debug)]
pub(super) struct Magnitudes {
    smallest: [f32; LANES],
    largest: [f32; LANES],
}

/// The exponents of some finite numbers that are not zero, as an `f32` has them: 127 for 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exponents {
    pub(super) smallest: i32,
    pub(super) largest: i32,
}

impl Exponents {
    /// True if an `f64` has every sum of `count` such numbers, all of which are multiples of the smallest one's lowest
    /// bit.
    #[inline(always)]
    pub(super) fn allow(self, count: usize) -> bool {
        self.largest - self.smallest + SIGNIFICAND + count_bits(count) <= WIDE_SIGNIFICAND
    }
}

impl Magnitudes {
    pub(super) const NONE: Self = Self { smallest: [f32::INFINITY; LANES], largest: [0.0; LANES] };

    /// Adds as many numbers as there are lanes.
    #[inline(always)]
    pub(super) fn add(&mut self, block: &[[u8; 4]; LANES]) {
        self.add_mapped(block, |magnitude| magnitude);
    }

    #[inline(always)]
    fn add_mapped(&mut self, block: &[[u8; 4]; LANES], map: impl Fn(f32) -> f32) {
        let block = block.map(|value| map(f32::from_le_bytes(value).abs()));
        self.smallest.iter_mut().zip(block).for_each(|(best, one)| *best = lesser(one, *best));
        self.largest.iter_mut().zip(block).for_each(|(best, one)| *best = greater(one, *best));
    }

    /// Adds fewer numbers than there are lanes.
    #[inline(always)]
    pub(super) fn add_rest(&mut self, rest: &[[u8; 4]]) {
        if let Some(last) = padded(rest) {
            self.add(&last);
        }
    }

    /// Adds any numbers.
    #[inline(always)]
    pub(super) fn add_all(&mut self, values: &[[u8; 4]]) {
        let (blocks, rest) = values.as_chunks::<LANES>();
        blocks.iter().for_each(|block| self.add(block));
        self.add_rest(rest);
    }

    /// The exponents of those that are neither zero nor NaN, if there are any; `None` if one is infinite. `rows` are the
    /// numbers.
    #[inline(always)]
    pub(super) fn exponents<'a>(&self, rows: impl Iterator<Item = &'a [[u8; 4]]>) -> Option<Option<Exponents>> {
        let (smallest, largest) = match self.folded() {
            (0.0, _) => without_zeros(rows).folded(),
            magnitudes => magnitudes,
        };
        // The exponents of subnormal numbers are that of the smallest normal one.
        let exponent = |magnitude: f32| i32::try_from(magnitude.to_bits() >> 23).unwrap_or(0).max(1);
        match largest {
            0.0 => Some(None),
            f32::INFINITY => None,
            _ => Some(Some(Exponents { smallest: exponent(smallest), largest: exponent(largest) })),
        }
    }

    #[inline(always)]
    fn folded(&self) -> (f32, f32) {
        (folded(&self.smallest, lesser), folded(&self.largest, greater))
    }
}

/// Fewer numbers than there are lanes, and one of them in the other lanes; `None` if there are none.
#[inline(always)]
fn padded(rest: &[[u8; 4]]) -> Option<[[u8; 4]; LANES]> {
    let mut last = [*rest.first()?; LANES];
    last.iter_mut().zip(rest).for_each(|(slot, &value)| *slot = value);
    Some(last)
}

/// Those of the numbers of some rows.
#[inline(always)]
pub(super) fn magnitudes<'a>(rows: impl Iterator<Item = &'a [[u8; 4]]>) -> Magnitudes {
    let mut magnitudes = Magnitudes::NONE;
    rows.for_each(|values| magnitudes.add_all(values));
    magnitudes
}

/// The magnitudes of the numbers that are not zero: NaN is not less than anything.
#[inline(always)]
fn without_zeros<'a>(rows: impl Iterator<Item = &'a [[u8; 4]]>) -> Magnitudes {
    let mut magnitudes = Magnitudes::NONE;
    for values in rows {
        let (blocks, rest) = values.as_chunks::<LANES>();
        for block in blocks.iter().chain(&padded(rest)) {
            magnitudes.add_mapped(block, |magnitude| if magnitude == 0.0 { f32::NAN } else { magnitude });
        }
    }
    magnitudes
}

/// The first number if it is less, else the second one, also if one is NaN.
#[inline(always)]
fn lesser(one: f32, other: f32) -> f32 {
    if one < other { one } else { other }
}

/// The first number if it is greater, else the second one, also if one is NaN.
#[inline(always)]
fn greater(one: f32, other: f32) -> f32 {
    if one > other { one } else { other }
}

/// The best of some lanes. If this was inlined, the lanes would be kept apart instead of in vectors.
#[inline(never)]
fn folded(lanes: &[f32; LANES], better: fn(f32, f32) -> f32) -> f32 {
    lanes.iter().copied().reduce(better).unwrap_or(0.0)
}

/// The least exponent of a power of two that is more than a count.
#[inline(always)]
pub(super) fn count_bits(count: usize) -> i32 {
    i32::try_from(usize::BITS - count.leading_zeros()).unwrap_or(WIDE_SIGNIFICAND)
}
