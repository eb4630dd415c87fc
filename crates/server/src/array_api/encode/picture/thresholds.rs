//! The values at which colours begin.
//!
//! A scale assigns a level to each value between the limits, by floating-point functions. What counts are 256
//! thresholds: a value has the last colour whose threshold it is not below. They are found once, by bisection over all
//! `f64`, so that pixels need only exact comparisons, which give the same result everywhere.

use zarrd_wire::picture::{ColorMap, Scale};

/// The number of colours.
pub(super) const COLORS: usize = 256;

/// The limits and the scale between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) scale: Scale,
    pub(super) map: ColorMap,
    /// The finite limits; `min` is not above `max`, and positive for the scale `log`.
    pub(super) min: f64,
    pub(super) max: f64,
    /// The magnitude up to which the scale `symlog` is linear.
    pub(super) linthresh: f64,
}

/// The threshold of each colour, in ascending order; the first is the lower limit. If a colour has no value, it is that
/// of the next one, or the first `f64` above the upper limit.
pub(super) fn thresholds(spread: &Spread) -> Vec<f64> {
    let end = spread.max.next_up();
    let mut thresholds = vec![spread.min];
    let mut least = order(spread.min);
    for level in 1..COLORS {
        let threshold = match spread.min < spread.max {
            true => first_key(least, order(end), |key| spread.level(value(key)) >= level),
            false => order(end),
        };
        thresholds.push(value(threshold));
        least = threshold;
    }
    thresholds
}

impl Spread {
    /// The number of the colour of a value between the limits.
    fn level(&self, value: f64) -> usize {
        let [min, max, value] = [self.min, self.max, value].map(|value| self.scaled(value));
        let range = max - min;
        // Halved first if the range overflows.
        let part =
            if range.is_finite() { (value - min) / range } else { (value / 2.0 - min / 2.0) / (max / 2.0 - min / 2.0) };
        let level = match self.map {
            ColorMap::Grey => (part * 255.0).round(),
            _ => part * 256.0,
        };
        // The cast saturates.
        (level as usize).min(COLORS - 1)
    }

    /// The value as matplotlib's scales transform it.
    fn scaled(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Log => value.log10(),
            Scale::Symlog => {
                // One decade is as wide as the linear part on either side.
                let linear_scale = 1.0 / (1.0 - 1.0 / 10.0);
                let magnitude = value.abs();
                if magnitude <= self.linthresh {
                    return value * linear_scale;
                }
                let decades = (magnitude / self.linthresh).ln() / 10_f64.ln();
                value.signum() * self.linthresh * (linear_scale + decades)
            }
        }
    }
}

/// The first key of a range with a property that all later keys have; `end` if none has.
fn first_key(start: i64, end: i64, has: impl Fn(i64) -> bool) -> i64 {
    let (mut start, mut end) = (start, end);
    while start < end {
        // The middle rounded down, so that it is never the end.
        let middle = start.saturating_add_unsigned(start.abs_diff(end) / 2);
        match has(middle) {
            true => end = middle,
            false => start = middle.saturating_add(1),
        }
    }
    start
}

/// An integer that orders numbers as they are ordered.
fn order(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

/// The number of a key of [`order`].
fn value(key: i64) -> f64 {
    let bits = if key < 0 { key ^ i64::MAX } else { key };
    f64::from_bits(bits as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spread(map: ColorMap, scale: Scale, min: f64, max: f64) -> Spread {
        Spread { scale, map, min, max, linthresh: 1.0 }
    }

    #[test]
    fn thresholds_divide_the_range() {
        let linear = thresholds(&spread(ColorMap::Viridis, Scale::Linear, 0.0, 256.0));
        assert_eq!(linear, (0..256).map(f64::from).collect::<Vec<_>>());
        let grey = thresholds(&spread(ColorMap::Grey, Scale::Linear, 0.0, 255.0));
        // As `round` has it, of the quotient times 255.
        assert_eq!(grey[..3], [0.0, 0.5_f64.next_down(), 1.5]);
        let log = thresholds(&spread(ColorMap::Viridis, Scale::Log, 1.0, 1e16));
        assert!((log[128] / 1e8 - 1.0).abs() < 1e-12 && (log[16] / 10.0 - 1.0).abs() < 1e-12, "{log:?}");
        let symlog = thresholds(&spread(ColorMap::Viridis, Scale::Symlog, -100.0, 100.0));
        assert!(symlog[128].abs() < 1e-12);
        assert!(symlog[127] > -1.0 && symlog[0] == -100.0);
    }

    #[test]
    fn equal_limits_have_one_color() {
        let one = thresholds(&spread(ColorMap::Magma, Scale::Linear, 7.0, 7.0));
        assert_eq!((one[0], one[1], one[255]), (7.0, 7_f64.next_up(), 7_f64.next_up()));
        let largest = thresholds(&spread(ColorMap::Magma, Scale::Linear, f64::MAX, f64::MAX));
        assert_eq!(largest[255], f64::INFINITY);
    }

    proptest! {
        #[test]
        fn thresholds_are_where_levels_begin(
            limits in prop::array::uniform2(prop_oneof![-1e3..1e3_f64, -1e300..1e300_f64, prop::num::f64::NORMAL]),
            scale in prop::sample::select(Scale::ALL),
            map in prop::sample::select(ColorMap::ALL),
        ) {
            let [min, max] = if scale == Scale::Log { limits.map(f64::abs) } else { limits };
            let spread = spread(map, scale, min.min(max), min.max(max));
            prop_assume!(spread.min < spread.max && spread.min != 0.0);
            let thresholds = thresholds(&spread);
            prop_assert!(thresholds.is_sorted() && thresholds[0] == spread.min);
            prop_assert!(thresholds[255] <= spread.max.next_up());
            for (level, &threshold) in thresholds.iter().enumerate().skip(1) {
                prop_assert!(spread.level(threshold) >= level || threshold > spread.max);
                prop_assert!(spread.level(threshold.next_down()) < level || thresholds[level - 1] == threshold);
            }
        }
    }
}
