//! Terms of sums: exact functions of elements.

use super::superaccumulator::SuperAccumulator;
use crate::element::Real;

/// A term of a sum: an exact function of an element.
pub(crate) trait Term: Send + 'static {
    /// The type of the elements.
    type Value: Real;
    /// True if [`of`](Self::of) may return a second part.
    const HAS_REST: bool;

    /// The term as the sum of two floats; NaN if it is not exactly that.
    fn of(value: Self::Value) -> (f64, f64);

    /// Adds the term `count` times.
    fn add_to(sum: &mut SuperAccumulator, value: f64, count: u64);

    /// The term of an infinity.
    fn special(value: f64) -> f64;
}

/// The element itself.
pub(crate) struct Plain<R>(std::marker::PhantomData<fn(R)>);

/// The square of the element.
pub(crate) struct Square<R>(std::marker::PhantomData<fn(R)>);

impl<R: Real> Term for Plain<R> {
    type Value = R;
    const HAS_REST: bool = false;

    #[inline]
    fn of(value: R) -> (f64, f64) {
        (value.to_f64(), 0.0)
    }

    fn add_to(sum: &mut SuperAccumulator, value: f64, count: u64) {
        sum.add_times(value, count);
    }

    fn special(value: f64) -> f64 {
        value
    }
}

impl<R: Real> Term for Square<R> {
    type Value = R;
    // The squares of narrower floats are exact.
    const HAS_REST: bool = size_of::<R>() > 4;

    #[inline]
    fn of(value: R) -> (f64, f64) {
        let value = value.to_f64();
        if Self::HAS_REST { product(value, value) } else { (value * value, 0.0) }
    }

    fn add_to(sum: &mut SuperAccumulator, value: f64, count: u64) {
        sum.add_square(value, count);
    }

    fn special(value: f64) -> f64 {
        value * value
    }
}

/// The rounded product of two floats, and what was rounded off; NaN if a float cannot be that.
#[inline]
pub(super) fn product(one: f64, other: f64) -> (f64, f64) {
    /// The magnitudes of a product between which none of its parts overflows or is subnormal.
    const RANGE: (f64, f64) = (1e-280, 1e280);
    let product = one * other;
    let ((high, low), (other_high, other_low)) = (halves(one), halves(other));
    let error = low * other_low - (((product - high * other_high) - low * other_high) - high * other_low);
    let is_exact = product.abs() >= RANGE.0 && product.abs() <= RANGE.1 || one == 0.0 || other == 0.0;
    (product, if is_exact { error } else { f64::NAN })
}

/// A float as the sum of two whose significands have half as many bits.
#[inline]
fn halves(value: f64) -> (f64, f64) {
    let wide = 134_217_729.0 * value;
    let high = wide - (wide - value);
    (high, value - high)
}
