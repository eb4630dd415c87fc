//! The limits of a picture: the values with its first colour and its last.

use zarrd_codec::Elements;
use zarrd_meta::data_type::{DataType, Number};
use zarrd_wire::{
    picture::{Limits, Scale},
    query::PictureQuery,
};

use super::values::{bytes_of, code_of, count, for_each_value, value_of_code, wide_integers};

/// The percentiles of robust limits.
const ROBUST: [f64; 2] = [2.0, 98.0];

/// The limits of a picture that follow from its elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FoundLimits {
    pub(super) min: f64,
    pub(super) max: f64,
}

impl FoundLimits {
    /// The limits of elements, if not both are given.
    pub(super) fn of(picture: &PictureQuery, data_type: &DataType, buffers: &[Elements]) -> Self {
        let domain = match picture.scale.unwrap_or_default() {
            Scale::Log => Domain::Positive,
            Scale::Linear | Scale::Symlog => Domain::Finite,
        };
        let empty = if domain == Domain::Positive { 1.0 } else { 0.0 };
        if data_type.number() == Some(Number::Bool) && domain == Domain::Finite {
            return Self { min: 0.0, max: 1.0 };
        }
        let found = match picture.limits.unwrap_or_default() {
            _ if picture.min.is_some() && picture.max.is_some() => None,
            Limits::Minmax => statistics(data_type, buffers, domain).extremes,
            Limits::Robust => percentiles(data_type, buffers, domain, ROBUST).map(|[low, high]| (low, high)),
        };
        let (min, max) = found.unwrap_or((empty, empty));
        Self { min, max }
    }
}

/// The finite values that limits are taken from.
struct Statistics {
    /// The least and the greatest; `None` if there are none.
    extremes: Option<(f64, f64)>,
    /// The number of all elements.
    count: u64,
}

/// The values that limits are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Domain {
    /// All that are finite.
    Finite,
    /// All that are finite and above 0.
    Positive,
}

impl Domain {
    fn contains(self, value: f64) -> bool {
        match self {
            Self::Finite => value.is_finite(),
            Self::Positive => value.is_finite() && value > 0.0,
        }
    }
}

/// The least and the greatest value. Those of integers that `f64` cannot have are rounded outwards.
fn statistics(data_type: &DataType, buffers: &[Elements], domain: Domain) -> Statistics {
    let mut statistics = Statistics { extremes: None, count: 0 };
    let mut add = |low: f64, high: f64| {
        let (min, max) = statistics.extremes.unwrap_or((low, high));
        statistics.extremes = Some((min.min(low), max.max(high)));
    };
    for elements in buffers {
        statistics.count = statistics.count.saturating_add(count(data_type, elements));
        if let Some(integers) = wide_integers(data_type, elements) {
            let integers = integers.filter(|&integer| domain == Domain::Finite || integer > 0);
            let extremes = integers.fold(None, |extremes: Option<(i128, i128)>, integer| {
                let (min, max) = extremes.unwrap_or((integer, integer));
                Some((min.min(integer), max.max(integer)))
            });
            if let Some((min, max)) = extremes {
                add(rounded_down(min), rounded_up(max));
            }
            continue;
        }
        for_each_value(data_type, elements, &mut |value| {
            if domain.contains(value) {
                add(value, value);
            }
        });
    }
    statistics
}

/// The percentiles of the values, as NumPy interpolates them; `None` if there are none.
fn percentiles<const N: usize>(
    data_type: &DataType,
    buffers: &[Elements],
    domain: Domain,
    percents: [f64; N],
) -> Option<[f64; N]> {
    let ranked = match data_type.fixed_size() {
        Some(1 | 2) => Ranked::counted(data_type, buffers, domain),
        _ => Ranked::listed(data_type, buffers, domain),
    };
    let mut ranked = ranked?;
    Some(percents.map(|percent| {
        let last = ranked.len.saturating_sub(1);
        let position = percent / 100.0 * last as f64;
        let below = position.floor();
        let part = position - below;
        let index = below as usize;
        let (low, high) = (ranked.at(index), ranked.at(index.saturating_add(1).min(last)));
        let step = high - low;
        let between = if part >= 0.5 { high - step * (1.0 - part) } else { low + step * part };
        // The step may overflow.
        if between.is_finite() { between.clamp(low, high) } else { low }
    }))
}

/// Values, by rank.
struct Ranked {
    len: usize,
    values: Sorted,
}

enum Sorted {
    /// Different values in ascending order, and the number of each and all before.
    Counted(Vec<(f64, usize)>),
    /// All values, sorted as far as they were asked for.
    Listed(Vec<f64>),
}

impl Ranked {
    /// Counts elements of one or two bytes.
    fn counted(data_type: &DataType, buffers: &[Elements], domain: Domain) -> Option<Self> {
        let mut counts = vec![0_usize; 1 << 16];
        for bytes in buffers.iter().map(bytes_of) {
            for element in bytes.chunks_exact(data_type.fixed_size()?.max(1)) {
                if let Some(count) = counts.get_mut(usize::from(code_of(element))) {
                    *count = count.saturating_add(1);
                }
            }
        }
        let mut values: Vec<_> = (0..=u16::MAX)
            .zip(counts)
            .filter(|&(_, count)| count > 0)
            .map(|(code, count)| (value_of_code(data_type, code), count))
            .filter(|&(value, _)| domain.contains(value))
            .collect();
        values.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let mut len = 0_usize;
        for (_, count) in &mut values {
            len = len.saturating_add(*count);
            *count = len;
        }
        (len > 0).then_some(Self { len, values: Sorted::Counted(values) })
    }

    fn listed(data_type: &DataType, buffers: &[Elements], domain: Domain) -> Option<Self> {
        let count: u64 = buffers.iter().map(|elements| count(data_type, elements)).sum();
        let mut values = Vec::with_capacity(usize::try_from(count).ok()?);
        for elements in buffers {
            for_each_value(data_type, elements, &mut |value| values.extend(domain.contains(value).then_some(value)));
        }
        (!values.is_empty()).then_some(Self { len: values.len(), values: Sorted::Listed(values) })
    }

    /// The value of a rank, which is below `len`.
    fn at(&mut self, rank: usize) -> f64 {
        match &mut self.values {
            Sorted::Counted(values) => {
                let index = values.partition_point(|&(_, up_to)| up_to <= rank);
                values.get(index).map_or(f64::NAN, |&(value, _)| value)
            }
            Sorted::Listed(values) if rank < values.len() => *values.select_nth_unstable_by(rank, f64::total_cmp).1,
            Sorted::Listed(_) => f64::NAN,
        }
    }
}

/// The greatest `f64` that is not above an integer.
fn rounded_down(integer: i128) -> f64 {
    let nearest = integer as f64;
    if nearest as i128 > integer { nearest.next_down() } else { nearest }
}

/// The least `f64` that is not below an integer.
fn rounded_up(integer: i128) -> f64 {
    let nearest = integer as f64;
    if (nearest as i128) < integer { nearest.next_up() } else { nearest }
}
