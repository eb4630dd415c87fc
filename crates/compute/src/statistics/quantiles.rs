//! Positions of quantiles among sorted elements.

/// The ranks of the elements between which quantiles lie, increasing.
pub(super) fn ranks(quantiles: &[f64], count: u64) -> Vec<u64> {
    if count == 0 {
        return Vec::new();
    }
    let mut ranks: Vec<u64> = quantiles
        .iter()
        .flat_map(|&quantile| {
            let (low, high, _) = position(quantile, count);
            [low, high]
        })
        .collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// The ranks below and above a quantile, and the part of the way between them.
pub(super) fn position(quantile: f64, count: u64) -> (u64, u64, f64) {
    let last = count.saturating_sub(1);
    let at = quantile * last as f64;
    let low = (at.floor() as u64).min(last);
    (low, low.saturating_add(1).min(last), at - at.floor())
}

/// Interpolates as NumPy does: from the nearer end.
pub(super) fn interpolated(low: f64, high: f64, part: f64) -> f64 {
    if low == high {
        return low;
    }
    let distance = high - low;
    let value = match part {
        0.0 => low,
        part if part >= 0.5 => high - distance * (1.0 - part),
        part => low + distance * part,
    };
    // Between infinities there is no number.
    if value.is_nan() { f64::NAN } else { value }
}
