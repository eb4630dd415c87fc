//! Vectors as wide as the processor has.

use pulp::{Arch, Simd, WithSimd};

/// A loop that the compiler turns into vector instructions, with its arguments.
pub(crate) trait Kernel {
    type Output;

    /// Runs the loop. This is always inlined, as is most of what it calls: what is not is compiled for any processor.
    fn run(self) -> Self::Output;
}

/// Runs a loop as it was compiled for the widest vectors that this processor has: on x86-64 with AVX2, if it has that.
/// Floats are rounded as by any other processor.
///
/// The choice takes about a nanosecond.
#[inline]
pub(crate) fn widest<K: Kernel>(kernel: K) -> K::Output {
    Arch::new().dispatch(Dispatched(kernel))
}

struct Dispatched<K>(K);

impl<K: Kernel> WithSimd for Dispatched<K> {
    type Output = K::Output;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> K::Output {
        self.0.run()
    }
}
