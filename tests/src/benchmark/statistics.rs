//! Medians, quantiles and ratios.

/// The median of a sample, with its minimum and maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
    /// The number of values.
    pub count: usize,
}

impl Spread {
    /// The spread of a sample; `None` if it is empty.
    pub fn of(figures: &[f64]) -> Option<Self> {
        let sorted = sorted(figures);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        Some(Self { median: median(&sorted)?, min, max, count: sorted.len() })
    }
}

/// The middle value, or the mean of the two middle values; `None` if there are no values.
pub fn median(figures: &[f64]) -> Option<f64> {
    let sorted = sorted(figures);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(sorted[sorted.len() / 2 - 1], upper))
}

/// The quantile at `part`, by nearest rank; `None` if there are no values.
pub fn quantile(figures: &[f64], part: f64) -> Option<f64> {
    let sorted = sorted(figures);
    let rank = (part.clamp(0.0, 1.0) * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// The spread of the ratios of values measured in the same round.
pub fn ratios(ours: &[f64], peers: &[f64]) -> Option<Spread> {
    let ratios: Vec<f64> = ours.iter().zip(peers).map(|(ours, peer)| ours / peer).collect();
    Spread::of(&ratios)
}

fn sorted(figures: &[f64]) -> Vec<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_an_odd_count_is_the_middle_value() {
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[5.0]), Some(5.0));
    }

    #[test]
    fn median_of_an_even_count_is_the_mean_of_the_middle_two() {
        assert_eq!(median(&[10.0, 1.0, 4.0, 2.0]), Some(3.0));
    }

    #[test]
    fn empty_sample_has_no_statistics() {
        assert_eq!(median(&[]), None);
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(ratios(&[1.0], &[]), None);
    }

    #[test]
    fn quantiles_use_the_nearest_rank() {
        let figures: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(quantile(&figures, 0.5), Some(100.0));
        assert_eq!(quantile(&figures, 0.99), Some(198.0));
        assert_eq!(quantile(&figures, 1.0), Some(200.0));
        assert_eq!(quantile(&figures, 0.0), Some(1.0));
    }

    #[test]
    fn percentile_99_of_few_values_is_the_maximum() {
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.99), Some(3.0));
    }

    #[test]
    fn spread_is_minimum_and_maximum() {
        let spread = Spread::of(&[3.0, 8.0, 1.0]);
        assert_eq!(spread, Some(Spread { median: 3.0, min: 1.0, max: 8.0, count: 3 }));
    }

    #[test]
    fn ratios_compare_values_of_the_same_round() {
        // The ratio of the medians would be 2.
        let spread = ratios(&[1.0, 4.0, 9.0], &[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(spread, Spread { median: 2.0, min: 1.0, max: 3.0, count: 3 });
        let spread = ratios(&[10.0, 4.0, 2.0], &[1.0, 2.0, 10.0]).unwrap();
        assert_eq!(spread, Spread { median: 2.0, min: 0.2, max: 10.0, count: 3 });
    }
}
